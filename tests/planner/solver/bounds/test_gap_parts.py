"""What a gap is said to consist of, against all plans of tiny problems, and on problems that can be done by hand."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.bounds.chain import lower_bound
from planner.solver.bounds.gap_parts import divide_gap
from planner.solver.evaluate import step_seconds_of, used_kinds, violations
from planner.solver.problem import Assignment, Objective, SolverProblem
from tests.support.planning.builders import all_assignments, random_priced
from tests.support.thorough import THOROUGH

OBJECTIVES = (Objective.STEP_TIME, Objective.MAX_RANK_TIME)


def keep(priced: SolverProblem, assignment: Assignment) -> Counter[int]:
    """The schemes and kernels of an assignment, and how many pieces it has of each."""
    return Counter(priced.shape_family[assignment.piece_shape].tolist())


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(24 if THOROUGH else 4))
def test_no_other_places_for_the_same_shards_gain_more(seed: int, objective: Objective) -> None:
    num_hosts, ranks_per_host = ((1, 3), (2, 2))[seed % 2]
    priced = random_priced(
        seed,
        num_tables=2,
        num_hosts=num_hosts,
        ranks_per_host=ranks_per_host,
        objective=objective,
        slowdown=seed // 2 % 2 == 1,
    )
    if seed % 3 == 0:  # half of each phase of an average plan is hidden
        hidden = 0.5 * priced.shape_seconds.mean(axis=0) * priced.num_tables / priced.num_ranks
        priced = replace(priced, phase_window_seconds=hidden)
    legal = [one for one in all_assignments(priced) if not violations(priced, one)]
    bound = lower_bound(priced, max_boxes=8).seconds
    for found in legal[:: max(len(legal) // 5, 1)]:
        seconds = step_seconds_of(priced, found)
        parts = divide_gap(priced, found, bound, max_boxes=20)
        assert min(parts.balance_seconds, parts.packing_seconds, parts.choice_seconds) >= 0
        total = parts.balance_seconds + parts.packing_seconds + parts.choice_seconds
        assert total == pytest.approx(seconds - bound, abs=1e-12 + 1e-9 * seconds)
        alike = [one for one in legal if keep(priced, one) == keep(priced, found)]
        least = min(step_seconds_of(priced, one) for one in alike)
        assert least >= (seconds - parts.balance_seconds) * (1 - 1e-9)


def whole_and_equal(num_tables: int) -> SolverProblem:
    """Tables that nothing cuts, each of one second in one phase, on two ranks."""
    priced = random_priced(0, num_tables=num_tables, num_hosts=1, ranks_per_host=2, num_phases=1)
    whole = restrict(priced, priced.family_max_pieces == 1)
    whole = restrict(whole, np.append(True, whole.family_table[1:] != whole.family_table[:-1]))  # one scheme each
    return replace(
        whole,
        shape_seconds=np.ones_like(whole.shape_seconds),
        shape_bytes=np.ones_like(whole.shape_bytes),
        shape_total_bytes=np.ones_like(whole.shape_total_bytes),
        capacity_bytes=np.full_like(whole.capacity_bytes, 100.0),
        phase_window_seconds=np.zeros_like(whole.phase_window_seconds),
        phase_weight=np.ones_like(whole.phase_weight),
    )


@pytest.mark.parametrize(("on_first", "balance"), [(2, 0.0), (3, 1.0)])
def test_three_equal_tables_on_two_ranks(on_first: int, balance: float) -> None:
    """Spread evenly they take one second and a half, and no plan takes less than two."""
    priced = whole_and_equal(3)
    assert priced.num_families == 3
    found = Assignment(piece_shape=np.arange(3), piece_site=np.array([0] * on_first + [1] * (3 - on_first)))
    parts = divide_gap(priced, found, 1.5, max_boxes=8)
    assert parts.balance_seconds == pytest.approx(balance, abs=1e-6)
    assert parts.packing_seconds == pytest.approx(0.5)
    assert parts.choice_seconds == pytest.approx(0.0, abs=1e-8)
    assert divide_gap(priced, found, 1.2, max_boxes=8).choice_seconds == pytest.approx(0.3)


def test_starts_are_those_of_the_plan() -> None:
    """Whatever kinds its problem charges."""
    plain = whole_and_equal(2)
    kinds = np.arange(plain.num_families)
    starts = np.array([[0.25], [0.5]])
    found = Assignment(piece_shape=np.arange(2), piece_site=np.array([0, 1]))
    for charged in itertools.product((True, False), repeat=2):
        priced = replace(plain, family_kind=kinds, kind_start_seconds=starts, charged_kinds=np.array(charged))
        assert np.all(used_kinds(priced, found))
        parts = divide_gap(priced, found, 1.0, max_boxes=4)
        assert parts.choice_seconds == pytest.approx(0.75)
        assert parts.balance_seconds == pytest.approx(0.0, abs=1e-8)
