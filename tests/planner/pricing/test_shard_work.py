"""Counts of work per shard, by hand: 2 hosts x 2 ranks, 64 samples per rank."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel, Scheme
from planner.access.table_columns import table_columns
from planner.domain.problem.access import RowCdf, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Feature, Table
from planner.pricing.shard_work import build_work, row_shards
from tests.support.planning.builders import make_cluster, make_problem, make_table

CLUSTER = make_cluster(2, 2)


def work_of(problem: Problem, *pieces: tuple[int, Scheme, int]) -> ShardWork:
    """Work of shards given by table, scheme and width."""
    return build_work(
        problem,
        table_columns(problem),
        table=np.array([table for table, _, _ in pieces]),
        scheme=np.array([scheme for _, scheme, _ in pieces], dtype=np.int8),
        kernel=np.array([Kernel.FUSED] * len(pieces), dtype=np.int8),
        shard_columns=np.array([width for _, _, width in pieces]),
    )


def test_row_shards() -> None:
    """Rows are shared by all 4 ranks, by the 2 of a host, or by none."""
    found = row_shards(np.arange(len(Scheme), dtype=np.int8), 4, 2)
    by_scheme = dict(zip(Scheme, found.tolist(), strict=True))
    assert by_scheme == {scheme: scheme.row_blocks(4, 2) for scheme in Scheme}
    assert by_scheme[Scheme.ROW_WISE] == 4
    assert by_scheme[Scheme.TABLE_ROW_WISE] == by_scheme[Scheme.GRID_SHARD] == 2
    assert by_scheme[Scheme.COLUMN_WISE] == by_scheme[Scheme.DATA_PARALLEL] == 1


@pytest.mark.parametrize(
    ("scheme", "lookups", "rows"),
    [
        # 64 samples x 4 ids = 256 per rank, 1,024 of all ranks; 1,001 rows
        (Scheme.TABLE_WISE, 1024, 1001),
        (Scheme.COLUMN_WISE, 1024, 1001),  # ids go to every column piece
        (Scheme.TABLE_COLUMN_WISE, 1024, 1001),
        (Scheme.ROW_WISE, 256, 251),  # a quarter of ids and rows: ceil(1001 / 4)
        (Scheme.TABLE_ROW_WISE, 512, 501),  # a half
        (Scheme.GRID_SHARD, 512, 501),
        (Scheme.DATA_PARALLEL, 256, 1001),  # its own batch, in its own copy
    ],
)
def test_lookups_and_rows(scheme: Scheme, lookups: int, rows: int) -> None:
    work = work_of(make_problem(make_table(rows=1001), cluster=CLUSTER), (0, scheme, 64))
    assert (work.lookups.tolist(), work.shard_rows.tolist()) == ([lookups], [rows])
    assert (work.batch_ids.tolist(), work.batch_outputs.tolist()) == ([256], [64])


def test_every_row_is_looked_up_in_one_block_and_every_id_once() -> None:
    """Blocks over ranks add up to the lookups of the whole table; so do replicas."""
    problem = make_problem(make_table(rows=1001), cluster=CLUSTER)
    blocks = {Scheme.ROW_WISE: 4, Scheme.TABLE_ROW_WISE: 2, Scheme.DATA_PARALLEL: 4, Scheme.TABLE_WISE: 1}
    for scheme, number in blocks.items():
        assert work_of(problem, (0, scheme, 64)).lookups[0] * number == 1024


def test_features_add_up() -> None:
    """3 ids in one bag and 0.5 in each of 2: 4 ids and 3 outputs per sample, expected 1 + 2 x 0.5."""
    features = (
        Feature(name="a", pooling_factor=3.0),
        Feature(name="b", pooling_factor=0.5, num_poolings=2.0),
    )
    table = replace(make_table(), features=features)
    work = work_of(make_problem(table, cluster=CLUSTER), (0, Scheme.TABLE_WISE, 64))
    assert work.batch_ids.tolist() == [64 * 4.0]
    assert work.batch_outputs.tolist() == [64 * 3.0]
    assert work.expected_outputs.tolist() == [64 * 2.0]


def test_a_sequence_has_an_output_per_id() -> None:
    work = work_of(make_problem(make_table(pooling="none"), cluster=CLUSTER), (0, Scheme.TABLE_WISE, 64))
    assert work.batch_outputs.tolist() == work.expected_outputs.tolist() == [256]
    assert not work.is_pooled[0]


def test_distinct_rows_are_at_most_lookups_and_rows() -> None:
    """One row of alpha 0 (all rows equally likely): 1,024 lookups of 10 rows touch all 10, a fair part of each cut."""
    table = replace(make_table(rows=10), access=ZipfAccess(alpha=0.0))
    problem = make_problem(table, cluster=CLUSTER)
    schemes = (Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.DATA_PARALLEL)
    found = work_of(problem, *((0, scheme, 64) for scheme in schemes)).distinct_rows
    assert found.tolist() == pytest.approx([10, 2.5, 5, 10], abs=1e-6)
    one_id_each = make_problem(replace(table, features=(Feature(name="f", pooling_factor=1 / 64),)), cluster=CLUSTER)
    assert work_of(one_id_each, (0, Scheme.DATA_PARALLEL, 64)).distinct_rows[0] <= 1.0  # one lookup, one row


def test_unknown_access_is_left_unknown() -> None:
    problem = make_problem(make_table(), cluster=CLUSTER)
    assert math.isnan(work_of(problem, (0, Scheme.TABLE_WISE, 64)).distinct_rows[0])


def two_tables() -> tuple[Table, Table]:
    """4 ids and one output of 64 columns; 2 weighted ids and one output of 32 columns."""
    return make_table("a", dim=64), replace(make_table("b", dim=32, pooling_factor=2.0), is_weighted=True)


def test_messages_carry_all_tables() -> None:
    """Outputs 64 x (64 + 32) columns; ids 64 x (4 x 8 B + 2 x (8 + 4) B). Each direction in its own type."""
    problem = make_problem(*two_tables(), cluster=CLUSTER, forward_comm_dtype="fp16")
    work = work_of(problem, (0, Scheme.TABLE_WISE, 64))
    assert work.forward_message_bytes == 64 * 96 * 2
    assert work.backward_message_bytes == 64 * 96 * 4
    assert work.id_message_bytes == 64 * (4 * 8 + 2 * 12)


def test_what_the_spec_does_not_say_is_not_a_number() -> None:
    problem = make_problem(*two_tables(), cluster=CLUSTER, backward_comm_dtype="bf16", output_dtype="fp16")
    work = work_of(problem, (0, Scheme.TABLE_WISE, 64), (1, Scheme.ROW_WISE, 32))
    assert np.isnan(work.forward_comm_element_bytes).all()
    assert work.backward_comm_element_bytes.tolist() == [2.0, 2.0]
    assert work.output_element_bytes.tolist() == [2.0, 2.0]
    assert work.is_weighted.tolist() == [False, True]
    assert (work.num_ranks, work.ranks_per_host) == (4, 2)


def test_optimizer_and_storage_of_each_table() -> None:
    """AdaGrad: 4 B per weight; row-wise AdaGrad: 4 B per row. int8 rows carry 4 B of scale and bias."""
    tables = (
        make_table("a", optimizer="adagrad"),
        make_table("b", optimizer="rowwise_adagrad", data_type="fp16"),
        make_table("c", optimizer="none", data_type="int8"),
    )
    work = work_of(make_problem(*tables, cluster=CLUSTER), *((t, Scheme.TABLE_WISE, 64) for t in range(3)))
    assert work.optimizer_element_bytes.tolist() == [4, 0, 0]
    assert work.optimizer_row_bytes.tolist() == [0, 4, 0]
    assert work.element_bytes.tolist() == [4, 2, 1]
    assert work.row_overhead_bytes.tolist() == [0, 0, 4]
    assert work.row_alignment_bytes.tolist() == [1, 1, 16]  # quantised rows are read by inference kernels


def test_rows_in_host_memory_are_not_padded() -> None:
    hosts = replace(CLUSTER, hardware=make_cluster(hbm_bytes=0.0).hardware)
    table = make_table("c", optimizer="none", data_type="int8")
    assert work_of(make_problem(table, cluster=hosts), (0, Scheme.TABLE_WISE, 64)).row_alignment_bytes.tolist() == [1]


def front_heavy(**changes: object) -> Problem:
    """80% of the lookups, and half of the distinct rows, are in the first quarter of 1,000 rows."""
    cdf = RowCdf(lookups=((0.25, 0.8), (1.0, 1.0)), distinct=((0.25, 0.5), (1.0, 1.0)))
    table = replace(make_table(), ids=cdf, access=ZipfAccess(alpha=0.0))
    return make_problem(table, cluster=CLUSTER, **changes)


def test_row_blocks_are_priced_as_the_heaviest() -> None:
    """1,024 lookups: 80% to one of four blocks, 80 + 20 / 3% to one of two; all to what is not cut by rows."""
    problem = front_heavy()
    schemes = (Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD, Scheme.TABLE_WISE, Scheme.DATA_PARALLEL)
    work = work_of(problem, *((0, scheme, 64) for scheme in schemes))
    half = 0.8 + 0.2 / 3
    assert work.lookups.tolist() == pytest.approx([1024 * share for share in (0.8, half, half, 1.0, 0.25)])
    whole = table_columns(problem).distinct_of_all_ranks[0]
    assert work.distinct_rows[:4].tolist() == pytest.approx([min(250, whole / 2), whole * 2 / 3, whole * 2 / 3, whole])
    assert work.shard_rows.tolist() == [250, 500, 500, 1000, 1000]


@pytest.mark.parametrize("runtime", ["hugectr", "sparsecore"])
def test_runtimes_with_modulo_rows_have_equal_blocks(runtime: str) -> None:
    assert work_of(front_heavy(runtime=runtime), (0, Scheme.ROW_WISE, 64)).lookups.tolist() == [256]


def test_a_shard_runs_as_wide_as_the_widest_table_that_may_share_its_launch() -> None:
    """Tables of 16, 64 and 32 columns share a launch, cut alike; another pooling, optimizer or module has its own."""
    narrow, wide = make_table("narrow", dim=16), make_table("wide", dim=64)
    others = [
        replace(make_table("mean", dim=256), pooling="mean"),
        replace(make_table("module", dim=256), module_path="other"),
        replace(make_table("adam", dim=256), optimizer=replace(narrow.optimizer, name="adam")),
    ]
    problem = make_problem(narrow, wide, make_table("middle", dim=32), *others, cluster=CLUSTER)
    work = work_of(
        problem,
        (0, Scheme.TABLE_WISE, 16),
        (0, Scheme.COLUMN_WISE, 4),
        (1, Scheme.ROW_WISE, 64),
        (2, Scheme.DATA_PARALLEL, 32),
        (3, Scheme.TABLE_WISE, 256),
    )
    assert work.launch_columns.tolist() == [64.0, 16.0, 64.0, 64.0, 256.0]
