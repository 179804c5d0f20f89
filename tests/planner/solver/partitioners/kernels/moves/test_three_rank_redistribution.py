"""Deals of three ranks, against all deals looked at one by one."""

import itertools

import numpy as np
import pytest

from cost_models.arrays import Floats
from planner.solver.partitioners.kernels.moves.meet_in_the_middle import Terms
from planner.solver.partitioners.kernels.moves.three_rank_redistribution import best_three_rank_redistribution

PIECES = 6
TERMS = Terms(price=np.array([1.0, 0.6]), reference=np.array([20.0, 25.0]), tau=np.array([4.0, 3.0]))


def instance(seed: int, *, fill: float) -> tuple[Floats, Floats, Floats]:
    """Six pieces of two phases and one tier, what three ranks carry anyhow, and the capacity of these, shape (3, 1).

    Pieces have whole bytes, whose sum is ``fill`` of what the ranks have room for.
    """
    rng = np.random.default_rng(seed)
    pieces, base = rng.uniform(1.0, 10.0, (PIECES, 3)), rng.uniform(5.0, 15.0, (3, 3))
    pieces[:, 2], base[:, 2] = rng.integers(1, 10, PIECES), rng.integers(1, 10, 3)
    capacity = base[:, 2] + np.ceil(pieces[:, 2].sum() / 3 / fill) + np.array([1.0, 0.0, 2.0])
    return pieces, base, capacity[:, None]


def all_redistributions(pieces: Floats, base: Floats, capacity: Floats) -> tuple[np.ndarray, Floats]:
    """All deals that fit, shape (n, P), and what each costs."""
    rates = np.array(list(itertools.product(range(3), repeat=PIECES)))
    carried = base + np.stack([(rates == s) @ pieces for s in range(3)], axis=1)
    fits = np.all(carried[:, :, 2:] <= capacity, axis=(1, 2))
    costs = np.sum(np.exp((carried[:, :, :2] - TERMS.reference) / TERMS.tau) @ TERMS.price, axis=1)
    return rates[fits], costs[fits]


def cost_of(pieces: Floats, base: Floats, redistribution: np.ndarray) -> float:
    carried = base + np.stack([pieces[redistribution == s].sum(axis=0) for s in range(3)])
    return float(np.sum(np.exp((carried[:, :2] - TERMS.reference) / TERMS.tau) @ TERMS.price))


@pytest.mark.parametrize("fill", [0.5, 0.98])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_redistribute_is_found_wherever_one_is_cheap_enough(seed: int, fill: float) -> None:
    pieces, base, capacity = instance(seed, fill=fill)
    rates, costs = all_redistributions(pieces, base, capacity)
    assert len(costs)
    cheapest = np.sort(costs)
    for budget in (cheapest[-1] * 1.01, cheapest[len(costs) // 2], cheapest[0] * (1 + 1e-6)):
        redistribution = np.full(PIECES, -1)
        assert best_three_rank_redistribution(TERMS, budget, pieces, base, capacity, redistribution, np.zeros(1))
        assert redistribution.tolist() in rates.tolist()
        assert cost_of(pieces, base, redistribution) == pytest.approx(cheapest[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_budget_that_nothing_meets(seed: int) -> None:
    pieces, base, capacity = instance(seed, fill=0.9)
    _, costs = all_redistributions(pieces, base, capacity)
    redistribution = np.full(PIECES, -1)
    assert not best_three_rank_redistribution(
        TERMS, costs.min() * (1 - 1e-9), pieces, base, capacity, redistribution, np.zeros(1)
    )
    assert np.all(redistribution == -1)


def test_ranks_that_cannot_hold_all_pieces() -> None:
    pieces, base, capacity = instance(0, fill=0.9)
    capacity -= np.floor(np.sum(capacity[:, 0] - base[:, 2]) / 3) - 1
    assert not best_three_rank_redistribution(TERMS, 1e9, pieces, base, capacity, np.full(PIECES, -1), np.zeros(1))


def test_equal_pieces_end_a_redistribution_early() -> None:
    """All sets for the first rank are alike then, and each takes as long: no more are tried than work allows."""
    pieces, base = np.tile([1.0, 1.0, 1.0], (18, 1)), np.zeros((3, 3))
    even = TERMS._replace(price=np.full(2, 0.5), reference=np.full(2, 6.0), tau=np.full(2, 2.0))
    looked, redistribution = np.zeros(1), np.full(18, -1)
    assert best_three_rank_redistribution(even, 1e3, pieces, base, np.full((3, 1), 99.0), redistribution, looked)
    assert sorted(np.bincount(redistribution).tolist()) == [6, 6, 6]
    assert looked[0] < 30_000
