"""The knapsack of one rank against brute force."""

import itertools

import numpy as np
import pytest

from planner.solver.partitioners.kernels.construct.knapsack import (
    Pieces,
    best_values,
    chosen_pieces,
    no_pieces,
    no_table,
)

CELLS = 12


def random_pieces(seed: int, num_items: int = 5) -> Pieces:
    rng = np.random.default_rng(seed)
    pieces = no_pieces(num_items, 4 * num_items)
    count = 0
    for item in range(num_items):
        pieces.first[item] = count
        for _ in range(int(rng.integers(0, 4))):
            pieces.cells_of_seconds[count], pieces.cells_of_bytes[count] = rng.integers(0, CELLS + 1, 2)
            pieces.value[count] = rng.random()
            count += 1
    pieces.first[num_items] = count
    pieces.counts[0] = num_items, count, count
    return pieces


def fits(pieces: Pieces, chosen: "list[int] | np.ndarray", seconds: int, size: int) -> bool:
    return bool(pieces.cells_of_seconds[chosen].sum() <= seconds and pieces.cells_of_bytes[chosen].sum() <= size)


def best_by_hand(pieces: Pieces, seconds: int, size: int) -> float:
    per_item = [[None, *range(pieces.first[i], pieces.first[i + 1])] for i in range(pieces.counts["items"][0])]
    best = 0.0
    for taken in itertools.product(*per_item):
        chosen = [piece for piece in taken if piece is not None]
        if fits(pieces, chosen, seconds, size):
            best = max(best, float(pieces.value[chosen].sum()))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_every_budget_has_its_best_value_and_the_pieces_that_make_it(seed: int) -> None:
    pieces, table = random_pieces(seed), no_table(5, CELLS)
    looked = best_values(pieces, table, CELLS, CELLS)
    assert looked >= pieces.counts["pieces"][0]
    chosen = np.zeros(5, dtype=np.int64)
    for seconds, size in itertools.product(range(0, CELLS + 1, 3), repeat=2):
        assert table.value[seconds, size] == pytest.approx(best_by_hand(pieces, seconds, size))
        taken = chosen[: chosen_pieces(pieces, table, seconds, size, chosen)]
        assert pieces.value[taken].sum() == pytest.approx(table.value[seconds, size])
        assert fits(pieces, taken, seconds, size)
        items = np.searchsorted(pieces.first[:6], taken, side="right")
        assert len(np.unique(items)) == len(taken)


def test_less_room_changes_nothing_within_it() -> None:
    pieces, whole, part = random_pieces(2), no_table(5, CELLS), no_table(5, CELLS)
    assert best_values(pieces, part, 7, 4) < best_values(pieces, whole, CELLS, CELLS)
    np.testing.assert_array_equal(part.value[:8, :5], whole.value[:8, :5])
    np.testing.assert_array_equal(part.choice[:, :8, :5], whole.choice[:, :8, :5])


def test_room_is_used_again() -> None:
    """A table holds nothing of the choice before."""
    table = no_table(5, CELLS)
    best_values(random_pieces(1), table, CELLS, CELLS)
    nothing = no_pieces(5, 4)
    assert best_values(nothing, table, CELLS, CELLS) == 0
    assert not table.value.any()
