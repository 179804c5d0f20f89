"""How many cuts there are, counted one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.solver.listed_cuts import lists_all_cuts, num_cuts
from tests.support.planning.builders import random_priced
from tests.support.planning.exhaustive import cuts


def test_16_columns() -> None:
    """12 + 4, 8 + 8 and 8 + 4 + 4; with a fourth piece also 4 + 4 + 4 + 4."""
    assert num_cuts(16, 4, 12, 2, 3) == 3
    assert num_cuts(16, 4, 12, 2, 4) == 4
    assert num_cuts(16, 4, 12, 3, 4) == 2
    assert num_cuts(16, 8, 12, 2, 4) == 1


@given(quads=st.integers(2, 12), most=st.integers(2, 12))
@settings(deadline=None, max_examples=40)
def test_against_all_cuts(quads: int, most: int) -> None:
    priced = random_priced(0, num_tables=1, columns=4 * quads, max_pieces=most)
    first, last = (int(ends[1]) for ends in priced.shapes_of_family)
    narrowest, widest = int(priced.shape_columns[first]), int(priced.shape_columns[last - 1])
    assert num_cuts(4 * quads, narrowest, widest, 2, most) == len(list(cuts(priced, 1)))


@pytest.mark.parametrize(("columns", "max_pieces", "all_listed"), [(8, 2, True), (12, 3, True), (16, 3, False)])
def test_whether_all_are_listed(columns: int, max_pieces: int, all_listed: bool) -> None:
    """8 = 4 + 4; 12 = 8 + 4 = 4 + 4 + 4; of 16 columns 12 + 4 is not listed."""
    assert lists_all_cuts(random_priced(0, columns=columns, max_pieces=max_pieces)) is all_listed


def test_many_cuts_are_counted_without_listing_them() -> None:
    assert num_cuts(4096, 4, 1024, 2, 128) == 2**53  # as many as are told apart
