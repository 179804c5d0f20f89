"""Sets of pieces between bounds, found by meeting in the middle, against all sets looked at one by one."""

import numpy as np
import pytest

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.moves.meet_in_the_middle import Terms, Wanted, find_cheap_sets
from tests.support.thorough import thorough

PIECES = 9
FAR = 1e9


def instance(seed: int) -> tuple[Floats, Terms, Wanted]:
    """Pieces of two phases and one tier, prices, and bounds that about a third of all sets keep."""
    rng = np.random.default_rng(seed)
    pieces = rng.uniform(1.0, 10.0, (PIECES, 3))
    base = rng.uniform(0.0, 5.0, 3)
    total = pieces.sum(axis=0) + base + rng.uniform(0.0, 20.0, 3)
    middle = pieces.sum(axis=0) / 2
    terms = Terms(price=rng.uniform(0.1, 1.0, 2), reference=middle[:2], tau=rng.uniform(5.0, 20.0, 2))
    wanted = Wanted(lowest=middle - 9.0, highest=middle + 9.0, base=base, total=total, sharers=1 + seed % 2)
    return pieces, terms, wanted


def all_sets(pieces: Floats) -> Floats:
    """Sums of all sets, shape (2^n, D), the set's bits being the row number."""
    rows = np.arange(1 << len(pieces))
    return (rows[:, None] >> np.arange(len(pieces)) & 1) @ pieces


def costs_of(sums: Floats, terms: Terms, wanted: Wanted) -> Floats:
    """What a rank costs with each sum, and its sharers with equal parts of the rest."""
    loads = (wanted.base + sums)[:, : len(terms.tau)]
    left = (wanted.total[: len(terms.tau)] - loads) / wanted.sharers
    own, theirs = (np.exp((load - terms.reference) / terms.tau) @ terms.price for load in (loads, left))
    return own + wanted.sharers * theirs


def met(
    pieces: Floats, terms: Terms, wanted: Wanted, *, budget: float = FAR, keep: int = 600, most: int = 10**6
) -> tuple[Ints, Floats]:
    halves = np.empty((2, 1 << (len(pieces) + 1) // 2, pieces.shape[1]))
    sets, costs = np.empty(keep, dtype=np.int64), np.empty(keep)
    preserved = find_cheap_sets(
        pieces, np.arange(len(pieces)), wanted, terms, budget, most, halves, sets, costs, np.zeros(1)
    )
    return sets[:preserved], costs[:preserved]


@thorough
@pytest.mark.parametrize("seed", range(6))
def test_all_sets_between_the_bounds_are_found(seed: int) -> None:
    pieces, terms, wanted = instance(seed)
    sums = all_sets(pieces)
    within = np.flatnonzero(np.all((sums >= wanted.lowest) & (sums <= wanted.highest), axis=1))
    assert 10 < len(within) < 500
    expected = costs_of(sums, terms, wanted)
    sets, costs = met(pieces, terms, wanted)
    assert np.array_equal(np.sort(sets), within)
    assert np.allclose(costs, expected[sets], rtol=1e-12)
    assert np.all(np.diff(costs) >= 0)


@pytest.mark.parametrize("seed", range(6))
def test_the_cheapest_are_preserved_and_none_beyond_the_budget(seed: int) -> None:
    pieces, terms, wanted = instance(seed)
    every, costs = met(pieces, terms, wanted)
    assert np.array_equal(met(pieces, terms, wanted, keep=7)[0], every[:7])
    budget = costs[5] * (1 + 1e-9)
    assert np.array_equal(met(pieces, terms, wanted, budget=budget)[0], every[:6])


def test_only_chosen_pieces_are_taken() -> None:
    """Bits count the chosen pieces, not all of them."""
    pieces, terms, wanted = instance(0)
    chosen = np.array([1, 4, 6, 7, 8])
    loose = wanted._replace(lowest=np.full(3, -FAR), highest=np.full(3, FAR))
    halves = np.empty((2, 8, 3))
    sets, costs = np.empty(64, dtype=np.int64), np.empty(64)
    preserved = find_cheap_sets(pieces, chosen, loose, terms, FAR, 1000, halves, sets, costs, np.zeros(1))
    assert preserved == 32
    assert np.array_equal(np.sort(sets[:preserved]), np.arange(32))
    assert np.allclose(
        costs[:preserved], costs_of(all_sets(pieces[chosen]), terms, loose)[sets[:preserved]], rtol=1e-12
    )


def test_bounds_that_report_little_end_the_search() -> None:
    pieces, terms, wanted = instance(0)
    loose = wanted._replace(lowest=np.full(3, -FAR), highest=np.full(3, FAR))
    assert len(met(pieces, terms, loose)[0]) == 1 << PIECES
    assert len(met(pieces, terms, loose, most=20)[0]) == 20


def test_all_sets_that_are_priced_are_counted() -> None:
    """And the sums of halves on top, whatever the bounds; nothing where bounds cross."""
    pieces, terms, wanted = instance(0)
    halves, sets, costs = np.empty((2, 32, 3)), np.empty(8, dtype=np.int64), np.empty(8)
    loose = wanted._replace(lowest=np.full(3, -FAR), highest=np.full(3, FAR))
    empty = wanted._replace(lowest=np.full(3, 0.5), highest=np.full(3, 0.6))
    crossed = wanted._replace(lowest=np.full(3, 1.0), highest=np.full(3, 0.0))
    looked = {}
    for name, bounds in (("loose", loose), ("empty", empty), ("crossed", crossed)):
        count = np.zeros(1)
        find_cheap_sets(pieces, np.arange(PIECES), bounds, terms, FAR, 10**6, halves, sets, costs, count)
        looked[name] = count[0]
    assert looked["loose"] - looked["empty"] == 1 << PIECES
    assert looked["empty"] > 16 + 32
    assert looked["crossed"] == 0


def test_bounds_that_nothing_keeps() -> None:
    pieces, terms, wanted = instance(0)
    for d in range(3):
        crossed = wanted.lowest.copy()
        crossed[d] = wanted.highest[d] + 1e-3
        assert len(met(pieces, terms, wanted._replace(lowest=crossed))[0]) == 0
