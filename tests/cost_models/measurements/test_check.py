"""Rows that break one rule are refused with the row, the column and the reason; sound ones pass."""

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_models.errors import InvalidMeasurements
from cost_models.measurements.cells import MAX_ISSUES
from cost_models.measurements.json_rows import rows_from_json, rows_to_json
from cost_models.measurements.schema import COLUMN_NAMES, joined
from tests.support.cost_models.measured_rows import collective, copy, lookup, some_measurements, some_rows


def refusal(rows: list[Any]) -> InvalidMeasurements:
    with pytest.raises(InvalidMeasurements) as caught:
        rows_from_json(rows)
    return caught.value


def test_sound_rows_pass() -> None:
    rows = some_measurements()
    assert rows.num_rows == 6
    assert rows.text("table").tolist() == ["t0", "t1", "t0", "", "", ""]
    assert rows.counts("rank").tolist() == [-1, -1, -1, 0, 1, -1]
    assert np.isnan(rows.numbers("lookups")[3:]).all()


def test_rows_survive_json() -> None:
    assert rows_to_json(some_measurements()) == some_rows()


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        (lookup(kind="lookups"), "kind", "expected lookup, collective, copy"),
        (lookup(seconds=None), "seconds", "must be given"),
        (lookup(device=""), "device", "must be given"),
        (lookup(shard_rows=None), "shard_rows", "must be given"),
        (lookup(seconds=float("nan")), "seconds", "expected a number"),
        (lookup(seconds=float("inf")), "seconds", "expected a number"),
        (lookup(seconds="0.002"), "seconds", "expected a number"),
        (lookup(seconds=True), "seconds", "expected a number"),
        (lookup(lookups=10**400), "lookups", "expected a number"),
        (lookup(launch=1.5), "launch", "whole number"),
        (lookup(launch=True), "launch", "whole number"),
        (lookup(launch=2**60), "launch", "whole number"),
        (lookup(launch=-3), "launch", "at least 0"),
        (lookup(seconds=0), "seconds", "above 0"),
        (lookup(lookups=-5), "lookups", "at least 0"),
        (lookup(num_ranks=0), "num_ranks", "at least 1"),
        (lookup(zipf_alpha=11), "zipf_alpha", "at most 10"),
        (lookup(device="=HYPERLINK(1)"), "device", "expected a text"),
        (lookup(device="+1"), "device", "expected a text"),
        (lookup(device="@SUM(A1)"), "device", "expected a text"),
        (lookup(device="-2+3"), "device", "expected a text"),
        (lookup(table="a\x00b"), "table", "expected a text"),
        (lookup(table="a\nb"), "table", "expected a text"),
        (lookup(table="a\n"), "table", "expected a text"),
        (lookup(table="x" * 10_000_000), "table", "at most 80"),
        (lookup(distinct_rows=1001.0), "distinct_rows", "more than lookups"),
        (lookup(distinct_rows=600.0, shard_rows=500), "distinct_rows", "more than shard_rows"),
        (lookup(reuse_0=0.9), "reuse_0", "sum to 1"),
        (lookup(reuse_3=None), "reuse_0", "all bins"),
        (lookup(forward_seconds=0.002), "seconds", "not the sum"),
        (lookup(num_ranks=3, ranks_per_host=2), "ranks_per_host", "does not divide"),
        (lookup(seconds=500.0, forward_seconds=None), "seconds", "not milli"),
        (lookup(seconds=2e-12, forward_seconds=None, backward_seconds=None), "seconds", "than anything moves"),
        (lookup(seconds=1e9, forward_seconds=None), "seconds", "at most 600"),
        (collective(0, 0, operation="scatter"), "operation", "expected all_to_all"),
        (collective(0, 0, direction="up"), "direction", "forward or backward"),
        (collective(0, 2), "rank", "num_ranks - 1"),
        (copy(0, operation="all_to_all"), "operation", "expected gather"),
        (copy(0, row_bytes=None), "row_bytes", "for a gather"),
        (copy(0, contending=0), "contending", "at least 1"),
    ],
)
def test_one_broken_rule(row: dict[str, object], column: str, reason: str) -> None:
    error = refusal([copy(7), row])
    assert [(issue.row, issue.column) for issue in error.issues] == [(1, column)]
    assert reason in error.issues[0].reason
    assert error.issues[0].pointer == f"/1/{column}"
    assert len(error.issues[0].value) <= 43


@pytest.mark.parametrize("item", [None, 3, "row", [lookup()]])
def test_an_item_that_is_no_object(item: object) -> None:
    assert refusal([lookup(), item]).issues[0].pointer == "/1"


def test_unknown_columns_are_named() -> None:
    (issue,) = refusal([lookup(colour="red")]).issues
    assert (issue.value, issue.reason) == ("colour", "unknown column")


def test_no_rows_are_refused() -> None:
    assert refusal([]).issues[0].reason == "there are no rows"


@pytest.mark.parametrize("column", ["seconds", "device", "task", "repeats"])
def test_rows_of_one_launch_agree(column: str) -> None:
    other: dict[str, object] = {"seconds": 0.0021, "device": "Other CPU", "task": "seed0-round1", "repeats": 6}
    (issue,) = refusal([lookup(0), lookup(0, "t1", **{column: other[column]})]).issues
    assert (issue.row, issue.column) == (1, column)
    assert "differs from row 1 of the same launch" in issue.reason


def test_ranks_of_one_collective_have_their_own_seconds_but_stand_once() -> None:
    (issue,) = refusal([collective(0, 0), collective(0, 1), collective(0, 1, seconds=0.5)]).issues
    assert (issue.row, issue.column) == (2, "rank")


def test_a_row_that_stands_twice() -> None:
    (issue,) = refusal([*some_rows(), lookup(0, "t1")]).issues
    assert issue.row == 6
    assert "the same as row 2" in issue.reason


def test_units_are_those_of_the_whole_launch() -> None:
    """Of a fused launch of many shards each does little in the time of all."""
    slow = {"seconds": 2.0, "forward_seconds": 1.0, "backward_seconds": 1.0}
    rows = [lookup(0, f"t{i}", **slow) for i in range(10)]  # 10 x 32 kB in 2 s: 160 kB/s
    assert rows_from_json(rows).num_rows == 10
    assert refusal(rows[:5]).num_issues == 5  # 80 kB/s


def test_the_first_fifty_issues_are_preserved() -> None:
    error = refusal([lookup(i, seconds=-1.0, lookups=-1.0) for i in range(60)])
    assert error.num_issues == 120
    assert len(error.issues) == MAX_ISSUES
    assert "119 more" in str(error)
    assert [issue.row for issue in error.issues] == sorted(issue.row for issue in error.issues)


def test_joined_files_share_no_launch() -> None:
    both = joined([some_measurements(), some_measurements()])
    assert both.counts("launch").tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]
    assert joined([]).num_rows == 0


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", "=1", "forward"])
CHANGES = st.dictionaries(st.sampled_from(COLUMN_NAMES), VALUES | st.lists(VALUES, max_size=1), max_size=3)


@settings(deadline=None)
@given(st.lists(CHANGES.map(lambda changes: lookup() | changes), max_size=3))
def test_whatever_comes_is_refused_or_sound(items: list[dict[str, object]]) -> None:
    with contextlib.suppress(InvalidMeasurements):
        rows = rows_from_json(items)
        assert np.all(rows.numbers("seconds") > 0)
        assert rows_to_json(rows) == [
            {name: value for name, value in item.items() if value not in (None, "", -1)} for item in items
        ]
