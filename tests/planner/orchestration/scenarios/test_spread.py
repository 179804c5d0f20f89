"""What is minimised over scenarios."""

import numpy as np
import pytest

from planner.orchestration.scenarios.spread import Spread

STEPS = np.array([4.0, 1.0, 3.0, 2.0])


@pytest.mark.parametrize(
    ("quantile", "cost"),
    [(1.0, 4.0), (0.9, 4.0), (0.75, 3.0), (0.5, 2.0), (0.25, 1.0), (0.1, 1.0)],
)
def test_a_quantile_is_the_least_step_that_so_much_of_the_weight_does_not_exceed(quantile: float, cost: float) -> None:
    assert Spread(weights=np.ones(4), quantile=quantile).cost(STEPS) == cost


def test_weights_count() -> None:
    # 4.0 has 1 of 13 parts of the weight: nine tenths are reached without it.
    assert Spread(weights=np.array([1.0, 4.0, 4.0, 4.0]), quantile=0.9).cost(STEPS) == 3.0
    assert Spread(weights=np.array([1.0, 4.0, 4.0, 4.0])).cost(STEPS) == 4.0


def test_longer_steps_never_cost_less() -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        spread = Spread(weights=random.uniform(0.1, 3.0, 5), quantile=float(random.uniform(0.05, 1.0)))
        steps = random.uniform(1.0, 2.0, 5)
        assert spread.cost(steps) <= spread.cost(steps + random.uniform(0.0, 0.5, 5))


def test_a_share_of_the_weight_is_reached_up_to_rounding() -> None:
    spread = Spread(weights=np.array([0.1, 0.2, 0.7]))
    assert spread.reaches(np.array([True, True, False]), 0.3)
    assert not spread.reaches(np.array([True, True, False]), 0.31)
