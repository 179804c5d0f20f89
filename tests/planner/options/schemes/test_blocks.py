"""The arithmetic of cutting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.options.schemes.blocks import block_rows, has_empty_block, near_equal_widths


def test_777_rows_over_4_ranks() -> None:
    """TorchRec wants 195, 195, 195, 192; every other cut trains silently wrong."""
    assert block_rows(777, 4) == 195
    assert not has_empty_block(777, 4)


@pytest.mark.parametrize(
    ("rows", "blocks", "empty"), [(3, 8, True), (8, 8, False), (9, 8, True), (10, 4, False), (1, 1, False)]
)
def test_empty_blocks(rows: int, blocks: int, empty: bool) -> None:
    """9 rows over 8 ranks: blocks of 2 rows fill 5 ranks and leave three with none."""
    assert has_empty_block(rows, blocks) is empty


@given(st.integers(1, 10**6), st.integers(1, 256))
def test_empty_exactly_when_the_last_block_gets_nothing(rows: int, blocks: int) -> None:
    block = block_rows(rows, blocks)
    sizes = [max(0, min(block, rows - i * block)) for i in range(blocks)]
    assert sum(sizes) == rows
    assert has_empty_block(rows, blocks) == (min(sizes) == 0)


def test_near_equal_widths() -> None:
    assert near_equal_widths(128, 3) == (44, 44, 40)
    assert near_equal_widths(100, 2) == (52, 48)


@given(st.integers(1, 300), st.integers(1, 64))
def test_near_equal_widths_are_quads_that_add_up(quads: int, pieces: int) -> None:
    widths = near_equal_widths(4 * quads, pieces)
    assert (sum(widths), len(widths)) == (4 * quads, pieces)
    assert all(width % 4 == 0 for width in widths)
    assert 0 <= widths[0] - widths[-1] <= 4
    assert list(widths) == sorted(widths, reverse=True)
