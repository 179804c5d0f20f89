"""The ``torchrec`` ledger against TorchRec's own storage estimator, run here on described tables."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from cost_models.arrays import Floats
from cost_models.vocabulary import CACHED_KERNELS, Kernel, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.options.runtimes.torchrec.rules import SCHEMES
from planner.pricing.memory.ledger import EXACT, LINES, TORCHREC, ShardLedger, shard_ledger
from planner.pricing.shard_work import build_work
from tests.support.planning.builders import make_cluster, make_problem, make_table

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

BATCH = 512
KERNELS = ("dense", "fused", "fused_uvm", "fused_uvm_caching", "key_value")
TABLES = (
    make_table("plain", 10_000, 64, pooling_factor=5.0),
    make_table("rare", 50_000, 32, pooling_factor=0.3),
    make_table("wide_half", 3_000, 256, pooling_factor=20.5, data_type="fp16"),
)
OPTIMIZER_CLASSES = {"sgd": "SGD", "adam": "Adam", "rowwise_adagrad": "RowWiseAdagrad", "adagrad": "Adagrad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one comparison is about."""

    is_weighted: bool = False
    pipeline: str = "none"
    share: float = 0.2
    optimizer: str = "sgd"
    pod_size: int | None = None  # ranks; TorchRec counts hosts


def torchrec_bytes(settings: Settings) -> list[tuple[str, str, str, int, int, list[int]]]:
    """Let TorchRec enumerate and size: (table, scheme, kernel, rows, columns, bytes by tier)."""
    pytest.importorskip("torchrec")
    import torch
    import torchrec.optim
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import Topology
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.planner.shard_estimators import EmbeddingStorageEstimator
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.distributed.types import CacheParams, PipelineType
    from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection

    pod_hosts = None if settings.pod_size is None else settings.pod_size // 4
    topology = Topology(world_size=8, local_world_size=4, pod_size=pod_hosts, compute_device="cuda")
    constraints = {
        table.name: ParameterConstraints(
            sharding_types=[scheme.label for scheme in SCHEMES],
            compute_kernels=list(KERNELS),
            pooling_factors=[feature.pooling_factor for feature in table.features],
            cache_params=CacheParams(load_factor=settings.share),
        )
        for table in TABLES
    }
    configs = [
        EmbeddingBagConfig(
            name=table.name,
            num_embeddings=table.num_embeddings,
            embedding_dim=table.embedding_dim,
            feature_names=[feature.name for feature in table.features],
            data_type=DataType.FP16 if table.data_type.name == "fp16" else DataType.FP32,
        )
        for table in TABLES
    ]
    module: Any = EmbeddingBagCollection(tables=configs, is_weighted=settings.is_weighted, device=torch.device("meta"))
    for parameter in module.parameters():
        # What apply_optimizer_in_backward leaves behind is all that TorchRec's planner knows of an optimizer.
        parameter._optimizer_classes = [getattr(torchrec.optim, OPTIMIZER_CLASSES[settings.optimizer])]  # noqa: SLF001
    sharder: Any = EmbeddingBagCollectionSharder()
    pipeline = PipelineType(settings.pipeline)
    enumerator = EmbeddingEnumerator(
        topology=topology,
        batch_size=BATCH,
        constraints=constraints,
        estimator=EmbeddingStorageEstimator(topology=topology, constraints=constraints, pipeline_type=pipeline),
    )
    return [
        (
            option.name,
            option.sharding_type,
            option.compute_kernel,
            *shard.size,
            [getattr(shard.storage, tier.label, 0) for tier in Tier],  # it knows of no storage-class memory
        )
        for option in enumerator.enumerate(module, [sharder])
        for shard in option.shards
    ]


def ledgers(settings: Settings) -> tuple[Floats, ShardLedger, ShardLedger]:
    """Return TorchRec's bytes by tier, its ledger as we keep it, and the exact one."""
    found = torchrec_bytes(settings)
    index = {table.name: i for i, table in enumerate(TABLES)}
    optimizer = make_table(optimizer=settings.optimizer).optimizer
    problem = make_problem(
        *(replace(table, is_weighted=settings.is_weighted, optimizer=optimizer) for table in TABLES),
        cluster=make_cluster(2, 4, settings.pod_size),
        batch_size_per_rank=BATCH,
        pipeline=settings.pipeline,
    )
    table = np.array([index[name] for name, *_ in found])
    kernel = np.array([Kernel.from_label(kernel) for _, _, kernel, *_ in found], dtype=np.int8)
    work = build_work(
        problem,
        table_columns(problem),
        table=table,
        scheme=np.array([Scheme.from_label(scheme) for _, scheme, *_ in found], dtype=np.int8),
        kernel=kernel,
        shard_columns=np.array([columns for *_, columns, _ in found]),
        cache_load_factor=np.where(np.isin(kernel, CACHED_KERNELS), settings.share, np.nan),
    )
    stored_rows = np.array([rows for *_, rows, _, _ in found])
    assert set(work.scheme) == set(SCHEMES)
    assert set(work.kernel) == {kernel for kernel in Kernel if not kernel.facts.is_hashed}
    peer, exact = (
        shard_ledger(problem, work, table=table, stored_rows=stored_rows, ledger=name) for name in (TORCHREC, EXACT)
    )
    return np.array([held for *_, held in found], dtype=np.float64), peer, exact


@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
def test_torchrec_s_ledger_is_torchrec_s(is_weighted: bool) -> None:
    """TorchRec holds 8 B per id with or without a weight; what a weighted feature really brings is more."""
    theirs, peer, exact = ledgers(Settings(is_weighted=is_weighted))
    np.testing.assert_array_equal(peer.by_tier(), theirs)
    ids = LINES.index("input_buffers")
    assert np.all((exact.bytes > peer.bytes)[:, ids] == is_weighted)


def test_row_blocks_of_pods_are_torchrec_s() -> None:
    theirs, peer, _ = ledgers(Settings(pod_size=8))
    np.testing.assert_array_equal(peer.by_tier(), theirs)
    assert not np.array_equal(theirs, ledgers(Settings())[0])


@pytest.mark.parametrize("pipeline", ["none", "train_sparse_dist", "train_prefetch_sparse_dist"])
@pytest.mark.parametrize("share", [0.015, 0.2, 1.0])
@pytest.mark.parametrize("optimizer", OPTIMIZER_CLASSES)
def test_caches_and_tiers_are_torchrec_s(pipeline: str, share: float, optimizer: str) -> None:
    theirs, peer, _ = ledgers(Settings(pipeline=pipeline, share=share, optimizer=optimizer))
    assert np.all(np.delete(theirs, Tier.SCM, axis=1).sum(axis=0) > 0)
    np.testing.assert_array_equal(peer.by_tier(), theirs)
