"""Whether shards share a cell: what is proven in columns, and what is swept, against comparing every pair."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner.verification.overlap
from planner.domain.plan.shards import Shard, Shards
from planner.verification.overlap import overlapping_shards
from tests.planner.verification.test_verify import WHOLE

Rectangle = tuple[int, int, int, int]  # row offset, rows, column offset, columns


def shards_of(rectangles: list[Rectangle]) -> Shards:
    return Shards.of(
        replace(WHOLE, row_offset=ro, num_rows=nr, column_offset=co, num_columns=nc) for ro, nr, co, nc in rectangles
    )


def meet(a: Shard, b: Shard) -> bool:
    rows = a.row_offset < b.row_offset + b.num_rows and b.row_offset < a.row_offset + a.num_rows
    columns = a.column_offset < b.column_offset + b.num_columns and b.column_offset < a.column_offset + a.num_columns
    return rows and columns


def agrees_with_every_pair(shards: Shards) -> None:
    found = overlapping_shards(shards)
    if found is None:
        assert not any(meet(a, b) for a, b in itertools.combinations(shards, 2))
    else:
        assert found[0] < found[1]
        assert meet(shards[found[0]], shards[found[1]])


RECTANGLE = st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 6), st.integers(1, 4))


@given(st.lists(RECTANGLE, max_size=8))
def test_rectangles_anywhere(rectangles: list[Rectangle]) -> None:
    agrees_with_every_pair(shards_of(rectangles))


@st.composite
def regular_cuts(draw: st.DrawFn) -> list[Rectangle]:
    """Column pieces left to right, each cut into row blocks: as the schemes list them."""
    found: list[Rectangle] = []
    column = 0
    for width in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        row = 0
        for rows in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
            found.append((row, rows, column, width))
            row += rows
        column += width
    return found


@given(regular_cuts())
def test_regular_cuts_are_proven_without_a_sweep(rectangles: list[Rectangle]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(planner.verification.overlap, "_swept")
        assert overlapping_shards(shards_of(rectangles)) is None


@given(regular_cuts(), st.data())
def test_spoiled_cuts(rectangles: list[Rectangle], data: st.DataObject) -> None:
    """One rectangle moved or stretched, and all in another order."""
    index = data.draw(st.integers(0, len(rectangles) - 1))
    change = data.draw(st.tuples(*[st.integers(-1, 2)] * 4))
    row, rows, column, width = (a + b for a, b in zip(rectangles[index], change, strict=True))
    spoiled = [*rectangles[:index], (row, max(rows, 1), column, max(width, 1)), *rectangles[index + 1 :]]
    agrees_with_every_pair(shards_of(spoiled))
    agrees_with_every_pair(shards_of(data.draw(st.permutations(spoiled))))


def test_a_negative_width_proves_nothing() -> None:
    """Each begins right of where the one before ends, and the third lies in the first."""
    assert overlapping_shards(shards_of([(0, 4, 0, 8), (0, 4, 8, -8), (0, 4, 0, 4)])) is not None
