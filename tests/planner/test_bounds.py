"""Every bound stays below the best plan that brute force finds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import bounds
from planner.priced import Objective, PricedOptions
from planner.pricing import restrict
from tests.planner.builders import brute_force, random_priced


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_bound_is_admissible_and_not_idle(objective: Objective, windows: bool, seed: int) -> None:
    priced = random_priced(seed, objective=objective, windows=windows, num_tables=2)
    best = brute_force(priced)
    assert best is not None
    bound = bounds.lower_bound(priced)
    assert bound <= best * (1 + 1e-12)
    if not windows:
        assert bound > 0.4 * best


def test_bound_sees_the_largest_piece() -> None:
    """One table that only fits whole: no plan beats its cost, though the average is a quarter of it."""
    priced = random_priced(0, num_tables=1, num_phases=1)
    whole = _first_only(priced)
    assert bounds.lower_bound(whole) == pytest.approx(float(whole.unit_seconds[0, 0]), rel=1e-6)


def _first_only(priced: PricedOptions) -> PricedOptions:
    keep = np.zeros(priced.num_options, dtype=np.bool_)
    keep[0] = True
    return restrict(priced, keep)


@given(st.integers(0, 10_000), st.data())
@settings(max_examples=40, deadline=None)
def test_any_multipliers_give_a_bound(seed: int, data: st.DataObject) -> None:
    """The dual value rests on no solver: random prices, even negative ones, stay below the optimum."""
    priced = random_priced(seed % 7, num_tables=2, windows=True)
    model = bounds.relaxation(priced)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    prices = bounds.Multipliers(
        average=rng.uniform(-0.5, 2, model.weight.shape),
        memory=rng.uniform(-0.01, 0.05, model.cluster_bytes.shape),
        largest=rng.uniform(-0.1, 0.6, (model.num_tables, model.weight.shape[0])),
    )
    best = brute_force(priced)
    assert best is not None
    assert bounds.dual_value(model, prices) <= best * (1 + 1e-12)


def test_memory_raises_the_bound() -> None:
    """Replication is fastest and largest; where it does not fit everywhere, the bound must say so."""
    priced = random_priced(3, num_tables=3, num_phases=1)
    cheap = priced.unit_seconds.copy()
    cheap[priced.unit_scope == 2] *= 0.01  # world-wide copies are nearly free ...
    sizes = priced.unit_bytes.copy()
    sizes[priced.unit_scope == 2] = 100.0  # ... and take 100 bytes on each of 4 ranks
    totals = sizes * priced.ranks_touched[:, None]
    roomy = replace(
        priced,
        unit_seconds=cheap,
        unit_bytes=sizes,
        unit_total_bytes=totals,
        capacity_bytes=np.full((4, 1), 300.0),
    )
    tight = replace(roomy, capacity_bytes=np.full((4, 1), 150.0))
    assert bounds.lower_bound(tight) > 2 * bounds.lower_bound(roomy)
