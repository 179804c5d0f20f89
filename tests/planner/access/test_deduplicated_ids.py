"""Ids that ranks send without repeats: distinct rows of one rank's batch, of sequences whose statistics are known."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.access.table_columns import table_columns
from planner.domain.problem.access import RowCdf, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.pricing.shard_work import build_work
from tests.support.planning.builders import make_cluster, make_problem, make_table

BATCH, RANKS, ROWS = 64, 4, 100
UNIFORM = ZipfAccess(alpha=0.0)
#: Of 256 ids in 100 equally likely rows so many are distinct: 100 (1 - 0.99^256).
DISTINCT = 100 * (1 - 0.99**256)


def problem(**changes: object) -> Problem:
    tables = (
        make_table("known", ROWS, pooling="none", access=UNIFORM),
        make_table("unknown", ROWS, pooling="none"),
        make_table("pooled", ROWS, access=UNIFORM),
    )
    return make_problem(*tables, cluster=make_cluster(1, RANKS), **{"use_index_dedup": True, **changes})


def work_of(of: Problem, scheme: Scheme, table: int = 0, kernel: Kernel = Kernel.FUSED) -> object:
    return build_work(
        of,
        table_columns(of),
        table=np.array([table]),
        scheme=np.array([scheme], dtype=np.int8),
        kernel=np.array([kernel], dtype=np.int8),
        shard_columns=np.array([64]),
    )


def test_sequences_send_distinct_rows_of_one_rank() -> None:
    columns = table_columns(problem())
    ids = BATCH * 4.0
    assert columns.batch_ids.tolist() == pytest.approx([DISTINCT, ids, ids])
    assert columns.batch_outputs.tolist() == pytest.approx([DISTINCT, ids, BATCH])
    assert columns.deduplicated is not None
    assert columns.deduplicated.batch_ids.tolist() == [ids] * 3
    assert columns.deduplicated.is_deduplicated.tolist() == [True, True, False]
    # What a step updates stays: distinct rows of all ranks together.
    off = table_columns(problem(use_index_dedup=False))
    assert columns.distinct_of_all_ranks.tolist()[::2] == off.distinct_of_all_ranks.tolist()[::2]
    assert off.deduplicated is None
    assert off.batch_ids.tolist() == [ids] * 3


@pytest.mark.parametrize(
    ("scheme", "kernel", "lookups"),
    [
        (Scheme.TABLE_WISE, Kernel.FUSED, RANKS * DISTINCT),
        (Scheme.ROW_WISE, Kernel.FUSED, DISTINCT),
        (Scheme.DATA_PARALLEL, Kernel.DENSE, DISTINCT),
    ],
)
def test_shards_look_up_what_ranks_send(scheme: Scheme, kernel: Kernel, lookups: float) -> None:
    of = problem()
    work = work_of(of, scheme, kernel=kernel)
    assert work.lookups[0] == pytest.approx(lookups)
    assert work.distinct_rows[0] <= work.lookups[0]
    unknown = work_of(of, scheme, table=1, kernel=kernel)
    assert unknown.lookups[0] == work_of(problem(use_index_dedup=False), scheme, table=1, kernel=kernel).lookups[0]


def test_messages_are_of_unique_ids_and_rows() -> None:
    work, off = (work_of(problem(use_index_dedup=used), Scheme.TABLE_WISE) for used in (True, False))
    left_out = BATCH * 4 - DISTINCT
    assert off.id_message_bytes - work.id_message_bytes == pytest.approx(8 * left_out)
    assert off.forward_message_bytes - work.forward_message_bytes == pytest.approx(4 * 64 * left_out)


def test_weights_of_ids_do_not_travel() -> None:
    weighted = replace(make_table("w", ROWS, pooling="none", access=UNIFORM), is_weighted=True)
    found = [table_columns(make_problem(weighted, use_index_dedup=used)).is_weighted.tolist() for used in (False, True)]
    assert found == [[True], [False]]


def test_blocks_have_their_share_of_distinct_rows() -> None:
    """Of lookups that all go to the first tenth of the rows, one block of four has all ids, and all unique ones."""
    order = RowCdf(lookups=((0.1, 0.9), (1.0, 1.0)), distinct=((0.1, 0.4), (1.0, 1.0)))
    table = replace(make_table("cut", ROWS, pooling="none", access=UNIFORM), ids=order)
    on, off = (make_problem(table, cluster=make_cluster(1, RANKS), use_index_dedup=used) for used in (True, False))
    ids = BATCH * 4.0
    # Up to row 25 of 100 lie 0.9 + 0.1 x 15 / 90 of the lookups, and 0.4 + 0.6 x 15 / 90 of the distinct rows.
    assert work_of(off, Scheme.ROW_WISE).lookups[0] == pytest.approx(RANKS * ids * (0.9 + 0.1 / 6))
    assert work_of(on, Scheme.ROW_WISE).lookups[0] == pytest.approx(RANKS * DISTINCT * 0.5)
