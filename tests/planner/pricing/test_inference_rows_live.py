"""Rows and caches of inference kernels have the bytes that FBGEMM gives them."""

import numpy as np
import pytest

from cost_models.analytic.sizes import stored_row_bytes
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.domain.plan.placement import Placement
from planner.pricing.shard_work import build_work
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import make_table
from tests.support.planning.serving_problems import SERVING, cards, serving_problem
from tests.support.planning.whole_tables import whole_table

pytestmark = pytest.mark.torchrec

#: of our types, those that FBGEMM's inference kernels know
TYPES = ("fp32", "fp16", "int8", "int4", "int2")


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("columns", [4, 8, 12, 32, 64, 96, 100, 128, 508])
def test_rows_of_accelerators_have_fbgemm_s_bytes(data_type: str, columns: int) -> None:
    inference = pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_inference")
    sparse_type = getattr(inference.SparseType, data_type.upper())
    table = make_table("a", dim=columns, data_type=data_type, optimizer="none")
    problem = serving_problem(table)
    work = build_work(
        problem,
        table_columns(problem),
        table=np.zeros(1, dtype=np.int64),
        scheme=np.array([Scheme.TABLE_WISE], dtype=np.int8),
        kernel=np.array([Kernel.FUSED], dtype=np.int8),
        shard_columns=np.array([columns]),
    )
    # IntNBitTableBatchedEmbeddingBagsCodegen: row_alignment 16, but 1 where use_cpu
    assert stored_row_bytes(work)[0] == inference.rounded_row_size_in_bytes(columns, sparse_type, 16)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("kernel", [Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING])
@pytest.mark.filterwarnings("ignore")
def test_tables_take_the_bytes_of_their_inference_operator(data_type: str, kernel: Kernel) -> None:
    """Two tables of two widths that share an operator; FBGEMM also rounds each table up to 128 bytes."""
    inference = pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_inference")
    operators = pytest.importorskip("tests.support.torchrec.operators")
    sizes, share = ((10_007, 64), (777, 128)), 0.1 if kernel is Kernel.FUSED_UVM_CACHING else None
    location = {
        Kernel.FUSED: inference.EmbeddingLocation.DEVICE,
        Kernel.FUSED_UVM: inference.EmbeddingLocation.MANAGED,
        Kernel.FUSED_UVM_CACHING: inference.EmbeddingLocation.MANAGED_CACHING,
    }[kernel]
    kind = getattr(inference.SparseType, data_type.upper())
    with operators.on_meta():
        made = inference.IntNBitTableBatchedEmbeddingBagsCodegen(
            [(f"t{index}", *size, kind, location) for index, size in enumerate(sizes)],
            device="meta",
            cache_load_factor=share or 0.2,
        )
    tables = [
        make_table(f"t{index}", rows, columns, data_type=data_type, optimizer="none")
        for index, (rows, columns) in enumerate(sizes)
    ]
    problem = serving_problem(*tables, cluster=cards(1, ddr_bytes=1e11, ddr_bytes_per_second=1e10))
    placed = tuple(whole_table(table, kernel=kernel, cache_load_factor=share) for table in tables)
    (rank,) = score(problem, Placement(world_size=1, ranks_per_host=1, tables=placed), SERVING).ranks
    weights = rank.ledger_bytes[kernel.tier(Tier.HBM)]["weights"]
    assert weights <= made.dev_size + made.uvm_size < weights + 2 * 128
    assert (made.dev_size == 0) is (kernel is not Kernel.FUSED)
    if share is not None:
        index = (made.cache_index_table_map, made.lxu_cache_state, made.lxu_state)
        held = rank.ledger_bytes[Tier.HBM]
        assert held["cache"] == made.lxu_cache_weights.numel()
        assert held["cache_index"] == sum(one.numel() * one.element_size() for one in index)
