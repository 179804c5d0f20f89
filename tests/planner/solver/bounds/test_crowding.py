"""Families that leave other tables too little memory: in no plan, and gone from bounds, searches, certificates."""

from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import drop_unusable, restrict
from planner.solver.bounds.chain import lower_bound, priced_memory
from planner.solver.bounds.crowding import choices_with_room, crowding_families, exceed_memory
from planner.solver.bounds.master import solve_relaxation
from planner.solver.bounds.relaxation import relaxations
from planner.solver.evaluate import objective_of
from planner.solver.problem import Objective, Scope, SolverProblem
from tests.support.planning.builders import best_assignment, brute_force, random_priced
from tests.support.planning.certificates import certified


def tight(seed: int, *, num_tables: int = 3, objective: Objective = Objective.STEP_TIME) -> SolverProblem:
    """A random instance that fits whole tables, and hardly more; in bytes of which one more or less does not matter."""
    priced = random_priced(seed, num_tables=num_tables, fill=0.9, objective=objective)
    sizes = ("shape_bytes", "shape_total_bytes", "capacity_bytes")
    return replace(priced, **{name: 1e6 * getattr(priced, name) for name in sizes})


def quick_replicas(priced: SolverProblem) -> SolverProblem:
    """The same, where pieces on all ranks take next to no time."""
    on_all = priced.family_scope[priced.shape_family] == Scope.WORLD
    return replace(priced, shape_seconds=np.where(on_all[:, None], 0.01, 1.0) * priced.shape_seconds)


def test_crowding_families_are_in_no_plan() -> None:
    num_crowding = 0
    for seed in range(5):
        priced = tight(seed)
        crowding = crowding_families(priced)
        num_crowding += np.count_nonzero(crowding)
        for family in np.flatnonzero(crowding).tolist():
            alone = priced.family_table != priced.family_table[family]
            alone[family] = True
            assert brute_force(restrict(priced, alone)) is None
        assert brute_force(restrict(priced, ~crowding)) == brute_force(priced)
    assert num_crowding >= 5


def test_a_family_may_crowd_once_another_one_is_gone() -> None:
    """Table 1 may take 90 of 100 if table 0 takes 10, and the choice of table 0 that takes 10 exceeds another tier."""
    priced = tight(0, num_tables=2)
    is_replica = priced.shape_scope == Scope.WORLD
    whole = np.where(priced.shape_table == 0, np.where(is_replica, 10.0, 60.0), np.where(is_replica, 90.0, 40.0))
    exceeds = np.where(is_replica & (priced.shape_table == 0), 5.0, 0.0)
    taken = np.stack([whole, exceeds], axis=1) * (priced.shape_columns / 16)[:, None]
    sizes = taken / priced.shape_ranks[:, None]
    two = replace(priced, shape_bytes=sizes, shape_total_bytes=taken, capacity_bytes=np.tile([25.0, 0.5], (4, 1)))
    assert np.array_equal(crowding_families(two), priced.family_scope == Scope.WORLD)
    roomy = replace(two, capacity_bytes=np.tile([25.0, 2.0], (4, 1)))
    assert not np.any(crowding_families(roomy))


def test_tables_that_do_not_fit_keep_their_families() -> None:
    priced = tight(0)
    small = replace(priced, capacity_bytes=priced.capacity_bytes / 4)
    assert not np.any(crowding_families(small))
    assert choices_with_room(relaxations(small)[0], np.ones(len(relaxations(small)[0].family), dtype=bool)) is None
    none = restrict(priced, priced.family_table != 1)
    assert not np.any(crowding_families(none))
    assert not len(crowding_families(restrict(priced, np.zeros(priced.num_families, dtype=bool))))


@pytest.mark.parametrize("objective", list(Objective))
def test_bounds_stand_on_no_crowding_choice(objective: Objective) -> None:
    """A relaxation that mixes in replicas that nothing can hold lies far below one that does not."""
    raised = 0
    for seed in range(6):
        priced = quick_replicas(tight(seed, objective=objective))
        best = best_assignment(priced)
        if best is None:
            continue
        optimum, usable = objective_of(priced, best), drop_unusable(priced)
        assert not np.any(crowding_families(usable))
        bound = lower_bound(priced).seconds
        assert bound <= optimum * (1 + 1e-9)
        model = relaxations(priced)[0]
        relaxed = solve_relaxation(model, priced_memory(model), np.zeros(len(model.weight)))
        raised += relaxed is not None and bound > 1.1 * relaxed.value_seconds
        certificate = certified(priced, best, max_boxes=20)
        own = lower_bound(usable, max_boxes=20, known_seconds=optimum).seconds
        assert min(own, optimum) * (1 - 1e-7) <= certificate["claim"]["bound_seconds"] <= optimum * (1 + 1e-9)
    assert raised >= 2


def test_tables_exceed_the_memory_only_if_they_have_no_plan() -> None:
    num_exceeding = 0
    for seed in range(5):
        priced = tight(seed)
        assert not exceed_memory(priced)
        for part in (0.5, 0.9):
            less = replace(priced, capacity_bytes=part * priced.capacity_bytes)
            if exceed_memory(less):
                num_exceeding += 1
                assert brute_force(less) is None
    assert num_exceeding >= 5
