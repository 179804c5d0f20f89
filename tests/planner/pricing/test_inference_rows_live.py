"""Stored rows of inference kernels have the bytes that FBGEMM gives them."""

import numpy as np
import pytest

from cost_models.analytic.sizes import stored_row_bytes
from cost_models.vocabulary import Kernel, Scheme
from planner.access.table_columns import table_columns
from planner.pricing.shard_work import build_work
from tests.support.planning.builders import make_table
from tests.support.planning.serving_problems import serving_problem

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
