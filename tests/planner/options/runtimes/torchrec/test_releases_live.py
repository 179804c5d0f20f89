"""What the rules for TorchRec state of FBGEMM's kernels, against the release that is installed.

Operators for GPUs are built on the meta device; those for CPUs look up and train three rows.
"""

from typing import Any

import pytest

from cost_models.vocabulary import Kernel
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.options.runtimes.torchrec.rules import HOST_OPTIMIZERS, LOOKUP_TYPES, TRAINED_TYPES, UNBUILT_OPTIMIZERS

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    DenseTableBatchedEmbeddingBagsCodegen,
    SplitTableBatchedEmbeddingBagsCodegen,
)
from fbgemm_gpu.tbe.ssd import SSDTableBatchedEmbeddingBags
from torchrec.distributed.embedding_sharding import group_tables
from torchrec.distributed.embedding_types import EmbeddingComputeKernel, ShardedEmbeddingTable
from torchrec.modules.embedding_configs import DataType, PoolingType

from tests.support.torchrec.operators import built, on_meta

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

MEMBERS = {
    "sgd": "EXACT_SGD",
    "rowwise_adagrad": "EXACT_ROWWISE_ADAGRAD",
    "adagrad": "EXACT_ADAGRAD",
    "lars_sgd": "LARS_SGD",
    "adam": "ADAM",
    "lamb": "LAMB",
    "partial_rowwise_adam": "PARTIAL_ROWWISE_ADAM",
    "partial_rowwise_lamb": "PARTIAL_ROWWISE_LAMB",
}
TRAINED = tuple(name for name in OPTIMIZERS if name != "none")
TYPES = {name: SparseType(name) for name in ("fp32", "fp16", "bf16", "int8", "int4", "int2")}
ON_GPU = (EmbeddingLocation.DEVICE, EmbeddingLocation.MANAGED, EmbeddingLocation.MANAGED_CACHING)


def operator(optimizer: str, data_type: str, location: EmbeddingLocation, device: ComputeDevice, where: str) -> Any:
    """An operator of one table, as TorchRec asks for it: its cache has the type of its weights."""
    return SplitTableBatchedEmbeddingBagsCodegen(
        [(100, 16, location, device)],
        weights_precision=TYPES[data_type],
        cache_precision=TYPES[data_type],
        optimizer=EmbOptimType[MEMBERS[optimizer]],
        device=torch.device(where),
        learning_rate=0.1,
    )


def trains_on_a_host(optimizer: str, data_type: str) -> bool:
    """Whether rows that were looked up have moved after a step."""
    try:
        made = operator(optimizer, data_type, EmbeddingLocation.HOST, ComputeDevice.CPU, "cpu")
        made.init_embedding_weights_uniform(-1.0, 1.0)
        before = made.split_embedding_weights()[0].clone()
        made(torch.tensor([1, 2, 3]), torch.tensor([0, 2, 3])).float().sum().backward()
    except (AssertionError, NotImplementedError, RuntimeError):
        return False
    return not torch.equal(before, made.split_embedding_weights()[0])


def is_built_for_gpus(optimizer: str, data_type: str, location: EmbeddingLocation) -> bool:
    try:
        with on_meta():
            operator(optimizer, data_type, location, ComputeDevice.CUDA, "meta")
    except (AssertionError, NotImplementedError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize("data_type", TYPES)
def test_what_hosts_train(data_type: str) -> None:
    trained = {name for name in TRAINED if trains_on_a_host(name, data_type)}
    assert trained == (HOST_OPTIMIZERS - {"none"} if data_type in TRAINED_TYPES else set())


@pytest.mark.parametrize("location", ON_GPU)
@pytest.mark.parametrize("data_type", TYPES)
def test_what_is_built_for_gpus(data_type: str, location: EmbeddingLocation) -> None:
    """Every optimizer that a table may have, with every type that is trained."""
    built = {name for name in TRAINED if is_built_for_gpus(name, data_type, location)}
    assert built == (set(TRAINED) if data_type in TRAINED_TYPES else set())


@pytest.mark.parametrize("optimizer", TRAINED)
def test_what_hands_out_its_state(optimizer: str) -> None:
    """TorchRec asks every fused operator for the state of its optimizer."""
    with on_meta():
        made = operator(optimizer, "fp32", EmbeddingLocation.DEVICE, ComputeDevice.CUDA, "meta")
        try:
            made.get_optimizer_state()
        except NotImplementedError:
            assert optimizer in UNBUILT_OPTIMIZERS
        else:
            assert optimizer not in UNBUILT_OPTIMIZERS


@pytest.mark.parametrize("data_type", [torch.float32, torch.float16, torch.bfloat16])
def test_what_the_dense_kernel_looks_up(data_type: torch.dtype) -> None:
    dense = DenseTableBatchedEmbeddingBagsCodegen([(100, 16)], use_cpu=True)
    dense.weights.data = dense.weights.data.to(data_type)
    name = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}[data_type]
    try:
        dense(torch.tensor([1, 2, 3]), torch.tensor([0, 2, 3]))
    except NotImplementedError:
        assert name not in LOOKUP_TYPES
    else:
        assert name in LOOKUP_TYPES


@pytest.mark.parametrize("data_type", ["fp32", "fp16", "bf16", "int8", "int4", "int2"])
def test_what_is_stored_on_drives(data_type: str) -> None:
    try:
        with on_meta():
            SSDTableBatchedEmbeddingBags(
                [(100, 16)],
                None,
                cache_sets=1,
                ssd_storage_directory="unused",
                weights_precision=SparseType(data_type),
            )
    except AssertionError:
        assert data_type not in TRAINED_TYPES
    else:
        assert data_type in TRAINED_TYPES


@pytest.mark.parametrize("has_bags", [True, False])
@pytest.mark.parametrize("kernel", [kernel for kernel in Kernel if not kernel.facts.is_hashed])
def test_torchrec_builds_no_operator_of_quantised_weights(kernel: Kernel, has_bags: bool) -> None:
    """TorchRec's own classes, with every optimizer and none; one table that is built shows that this test can fail."""
    optimizers = [*MEMBERS.values(), "NONE"]
    built = {
        (data_type, optimizer)
        for data_type in ("FP32", "INT8", "INT4", "INT2")
        for optimizer in optimizers
        if is_built_by_torchrec(EmbeddingComputeKernel(kernel.label), data_type, optimizer, has_bags=has_bags)
    }
    assert {data_type for data_type, _ in built} == {"FP32"}
    assert {"int8", "int4", "int2"}.isdisjoint(TRAINED_TYPES)


def is_built_by_torchrec(kernel: EmbeddingComputeKernel, data_type: str, optimizer: str, *, has_bags: bool) -> bool:
    table = ShardedEmbeddingTable(
        num_embeddings=100,
        embedding_dim=16,
        name="t",
        feature_names=["f"],
        embedding_names=["f"],
        data_type=DataType[data_type],
        pooling=PoolingType.SUM if has_bags else PoolingType.NONE,
        local_rows=100,
        local_cols=16,
        compute_kernel=kernel,
        fused_params={"optimizer": EmbOptimType[optimizer], "learning_rate": 0.1},
    )
    ((config,),) = group_tables([[table]])
    try:
        built(0, config, torch.device("cuda:0"), bags=has_bags)
    except (AssertionError, NotImplementedError, RuntimeError):
        return False
    return True
