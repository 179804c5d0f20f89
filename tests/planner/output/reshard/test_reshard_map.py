"""Reshard maps: every cell of every new shard is read once, from the rank that stored it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Scheme
from planner.domain.formats.reshard_bands import bands_between, reads_on
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.errors import UnsupportedRequest
from planner.output.explain.text.reshard import explain_reshard
from planner.output.reshard.reshard_map import reads_of_rank, reshard_map
from planner.verification.reshard_cover import cover_issue
from tests.support.planning.builders import make_table
from tests.support.planning.layouts import laid_out
from tests.support.planning.resharding import groups, kernel_of, owner_of_cells, plan_of

_WIDTHS = {True: ((8, 8), (4, 12), (4, 4, 8)), False: ((),)}
_CUTS = [(scheme, widths) for scheme in Scheme for widths in _WIDTHS[scheme.facts.cuts_columns]]


def layouts(rows: int, num_ranks: int) -> list[TablePlacement]:
    table = make_table("t", rows=rows, dim=16)
    return [
        laid_out(table, scheme, widths=widths, num_ranks=num_ranks, kernel=kernel_of(scheme), first=1)
        for scheme, widths in _CUTS
    ]


@pytest.mark.parametrize(("old_ranks", "new_ranks"), [(4, 2), (2, 4), (6, 4), (4, 6), (4, 4), (10, 4)])
@pytest.mark.parametrize("rows", [37, 40])
def test_every_cell_is_read_once_from_where_it_was_stored(rows: int, old_ranks: int, new_ranks: int) -> None:
    for before, after in itertools.product(layouts(rows, old_ranks), layouts(rows, new_ranks)):
        bands, owner = bands_between(groups(before.shards), groups(after.shards)), owner_of_cells(before)
        assert cover_issue(bands, before.shards, after.shards) == ""
        for rank in range(new_ranks):
            read = np.zeros(owner.shape, dtype=np.int64)
            for one in reads_on(rank, bands):
                cells = np.s_[
                    one.row_offset : one.row_offset + one.num_rows,
                    one.column_offset : one.column_offset + one.num_columns,
                ]
                read[cells] += 1
                assert np.all(owner[cells] == one.old_rank)
                assert one.num_rows > 0
                stored = [s for s in before.shards if s.rank == one.old_rank]
                assert (one.old_row_offset, one.old_column_offset) in {(s.row_offset, s.column_offset) for s in stored}
                own = [s for s in after.shards if s.rank == rank]
                assert (one.shard_row_offset, one.shard_column_offset) in {(s.row_offset, s.column_offset) for s in own}
            held = np.zeros(owner.shape, dtype=np.int64)
            for shard in after.shards:
                if shard.rank == rank:
                    rows_of = slice(shard.row_offset, shard.row_offset + shard.num_rows)
                    held[rows_of, shard.column_offset : shard.column_offset + shard.num_columns] += 1
            assert np.array_equal(read, held), (before.sharding_type, after.sharding_type, rank)


@pytest.mark.parametrize(
    ("field", "change", "says"),
    [
        ("num_rows", -1, "a read is not what its shards have in common"),
        ("row_offset", 1, "a read is of no shard of its plan"),
        ("num_columns", -4, "a read is not what its shards have in common"),
        ("to", {"ranks": "1,0"}, "a read is of no shard of its plan"),
        ("from", {"ranks": "3,2,1,0"}, "a read is of no shard of its plan"),
        ("from", {"num_rows": 7}, "a read is of no shard of its plan"),
    ],
)
def test_wrong_bands_are_seen(field: str, change: object, says: str) -> None:
    table = make_table("t", rows=40, dim=16)
    before, after = laid_out(table, Scheme.ROW_WISE), laid_out(table, Scheme.ROW_WISE, num_ranks=2)
    (band,) = bands_between(groups(before.shards), groups(after.shards))
    changed = {**band[field], **change} if isinstance(change, dict) else band[field] + change
    assert cover_issue([{**band, field: changed}], before.shards, after.shards) == says


def test_missing_and_repeated_bands_are_seen() -> None:
    table = make_table("t", rows=37, dim=16)
    before, after = laid_out(table, Scheme.ROW_WISE), laid_out(table, Scheme.COLUMN_WISE, widths=(4, 12))
    bands = bands_between(groups(before.shards), groups(after.shards))
    assert cover_issue(bands, before.shards, after.shards) == ""
    assert cover_issue(bands[1:], before.shards, after.shards) == "a shard is not covered by what it reads"
    twice = cover_issue([*bands, bands[0]], before.shards, after.shards)
    assert twice == "a shard reads twice from one stored shard"
    assert cover_issue([], before.shards, after.shards) == "nothing is read"


def test_one_copy_of_several_is_stored() -> None:
    table = make_table("t", rows=10, dim=16)
    before = laid_out(table, Scheme.DATA_PARALLEL, kernel=kernel_of(Scheme.DATA_PARALLEL))
    after = laid_out(table, Scheme.DATA_PARALLEL, num_ranks=2, kernel=kernel_of(Scheme.DATA_PARALLEL))
    found = reshard_map(plan_of(4, before), plan_of(2, after), {"t": OPTIMIZERS["sgd"]})
    assert found.totals.stored_bytes.tolist() == [2 * 10 * 16 * 4, 0, 0, 0]
    assert found.totals.num_reads.tolist() == [1, 1]


def test_totals_are_the_sums_of_reads() -> None:
    """Of every pair of layouts, with state of both kinds: partial row-wise Adam has a number per weight and per row."""
    for before, after in itertools.product(layouts(37, 6), layouts(37, 4)):
        given = (plan_of(6, before), plan_of(4, after), {"t": OPTIMIZERS["partial_rowwise_adam"]})
        found = reshard_map(*given)
        stored = np.zeros(6, dtype=np.int64)
        for rank in range(4):
            reads = [read for table in reads_of_rank(*given, rank)["tables"] for read in table["reads"]]
            assert found.totals.num_reads[rank] == len(reads)
            assert found.totals.weight_bytes[rank] == sum(read["weight_bytes"] for read in reads)
            assert found.totals.state_bytes[rank] == sum(read["state_bytes"] for read in reads)
            for read in reads:
                stored[read["old_rank"]] += read["weight_bytes"] + read["state_bytes"]
        assert found.totals.stored_bytes.tolist() == stored.tolist()
        (table,) = found.tables
        held = sum(s.num_rows * s.num_columns for s in after.shards)
        assert found.totals.weight_bytes.sum() == 4 * held
        if table.state == "read":
            per_row = sum(s.num_rows for s in after.shards)
            assert found.totals.state_bytes.sum() == 4 * held + 4 * per_row
        else:
            assert (table.state, found.totals.state_bytes.sum()) == ("lost", 0)


def test_states_of_tables_and_tables_of_one_plan_alone() -> None:
    names = ("same", "cut", "plain", "grown", "gone")
    tables = {name: make_table(name, rows=40, dim=16) for name in names}
    before = [laid_out(tables[name], Scheme.ROW_WISE) for name in names]
    after = [
        laid_out(tables["same"], Scheme.TABLE_WISE, num_ranks=2),
        laid_out(tables["cut"], Scheme.COLUMN_WISE, widths=(8, 8), num_ranks=2),
        laid_out(tables["plain"], Scheme.COLUMN_WISE, widths=(8, 8), num_ranks=2),
        laid_out(replace(tables["grown"], num_embeddings=80), Scheme.ROW_WISE, num_ranks=2),
        laid_out(make_table("new", rows=40, dim=16), Scheme.TABLE_WISE, num_ranks=2),
    ]
    optimizers = dict.fromkeys(names, OPTIMIZERS["rowwise_adagrad"]) | {"plain": OPTIMIZERS["sgd"]}
    found = reshard_map(plan_of(4, *before), plan_of(2, *after), optimizers)
    assert [(table.name, table.state) for table in found.tables] == [
        ("same", "read"),
        ("cut", "lost"),
        ("plain", "none"),
    ]
    assert (found.new_tables, found.gone_tables) == (("grown", "new"), ("grown", "gone"))
    document = found.to_document()
    assert document["state_bytes"] == 40 * 4
    text = explain_reshard(found)
    assert text.startswith("3 tables of 5 from 4 ranks on 2: ")
    assert "optimizer state of 1 table is lost; checkpoint_plan would keep it:\n    cut: rowwise_adagrad keeps" in text
    assert "start without stored state: grown, new" in text
    assert "are not read: grown, gone" in text
    without = reshard_map(plan_of(4, *before), plan_of(2, *after), {})
    assert {table.state for table in without.tables} == {"unknown"}
    assert without.to_document()["state_bytes"] is None
    assert "give the spec of the new plan" in explain_reshard(without)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("data_type", "", "does not say of which type"),
        ("data_type", "int8", "int8 weights are not trained"),
        ("compute_kernel", "hash_hybrid", "found by key"),
    ],
)
def test_tables_that_no_checkpoint_has_by_rows_are_refused(field: str, value: str, says: str) -> None:
    plan = plan_of(4, laid_out(make_table("t", rows=40, dim=16), Scheme.ROW_WISE))
    plan["tables"][0][field] = value
    with pytest.raises(UnsupportedRequest, match=says) as refused:
        reshard_map(plan, plan, {})
    assert refused.value.issue.pointer == f"/tables/0/{field}"


def test_a_thousand_row_blocks_are_a_few_bands() -> None:
    table = make_table("t", rows=1_000_003, dim=16)
    before = laid_out(table, Scheme.ROW_WISE, num_ranks=1024)
    after = laid_out(table, Scheme.ROW_WISE, num_ranks=1000)
    found = reshard_map(plan_of(1024, before), plan_of(1000, after), {"t": OPTIMIZERS["adam"]})
    assert len(found.tables[0].bands) <= 4
    assert found.totals.num_reads.sum() > 2000
    assert found.totals.weight_bytes.sum() == 1_000_003 * 16 * 4
