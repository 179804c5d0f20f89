"""Which widths a piece may have, and which cuts are listed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.options.schemes.widths import PIECE_COUNTS, Widths, piece_widths, whole_width


def listed(found: Widths | None) -> list[list[int]]:
    """The widths of every listed cut."""
    return [] if found is None else [found.columns[cut].tolist() for cut in found.cuts]


def test_128_columns_in_up_to_4_pieces() -> None:
    """32 quads: halves of 16, thirds of 11 + 11 + 10, quarters of 8; any piece of 32 to 96 columns is legal."""
    found = piece_widths(128, 32, 1024, 4)
    assert found is not None
    assert found.columns.tolist() == list(range(32, 97, 4))
    assert listed(found) == [[64, 64], [44, 44, 40], [32, 32, 32, 32]]
    assert found.max_pieces == 4


def test_whole() -> None:
    found = whole_width(62)
    assert (found.columns.tolist(), listed(found), found.max_pieces) == ([62], [[62]], 1)


def test_what_cannot_be_cut() -> None:
    assert piece_widths(130, 4, 1024, 8) is None  # not a multiple of 4
    assert piece_widths(60, 32, 1024, 8) is None  # two pieces need 64
    assert piece_widths(128, 32, 1024, 1) is None  # one piece is no cut
    assert piece_widths(4096, 32, 1024, 2) is None  # two pieces are still too wide


def test_wide_pieces_are_left_out() -> None:
    """3,000 columns in pieces of at most 1,024: three of 1,000 do, two do not."""
    found = piece_widths(3000, 32, 1024, 4)
    assert found is not None
    assert listed(found) == [[1000, 1000, 1000], [752, 752, 748, 748]]
    assert found.columns[-1] == 1024


def test_widths_that_are_no_multiple_of_4_are_rounded_inwards() -> None:
    found = piece_widths(64, 13, 50, 8)
    assert found is not None
    assert (found.columns[0], found.columns[-1]) == (16, 48)


def test_numbers_that_are_asked_for_are_listed() -> None:
    """As many pieces as ranks (9) and the most possible (14), which are not among the usual numbers."""
    found = piece_widths(4 * 14, 4, 1024, 100, (9,))
    assert found is not None
    assert [len(cut) for cut in found.cuts] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]


@given(
    quads=st.integers(1, 200),
    least=st.integers(1, 80),
    most_columns=st.integers(32, 1024),
    pieces=st.integers(1, 150),
    also=st.integers(1, 20),
)
def test_every_listed_cut_is_legal_and_no_small_one_is_left_out(
    quads: int, least: int, most_columns: int, pieces: int, also: int
) -> None:
    columns = 4 * quads
    found = piece_widths(columns, least, most_columns, pieces, (also,))
    counts = [len(cut) for cut in listed(found)]
    assert counts == sorted(set(counts)), "coarsest first, each number of pieces once"
    for widths in listed(found):
        assert sum(widths) == columns
        assert 2 <= len(widths) <= pieces
        assert all(width % 4 == 0 and least <= width <= most_columns for width in widths)
        assert widths == sorted(widths, reverse=True)
        assert widths[0] - widths[-1] <= 4

    def fits(count: int) -> bool:
        return count <= pieces and quads // count * 4 >= least and -(-quads // count) * 4 <= most_columns

    assert all((count in counts) is fits(count) for count in {*PIECE_COUNTS, also} if count >= 2 and count <= quads)
    if found is not None:
        assert np.all(np.diff(found.columns) == 4)
        assert found.max_pieces == max(counts), "the narrowest cut is listed"
