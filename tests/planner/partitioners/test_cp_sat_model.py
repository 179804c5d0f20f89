"""The integer program says yes to exactly the legal assignments, and counts their ticks."""

from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model

from planner.evaluate import objective_seconds, rank_loads, violations
from planner.partitioners.cp_sat_model import build, hint, read
from planner.priced import Assignment, Objective, PricedOptions
from planner.pricing import restrict, unusable_options
from tests.planner.builders import all_assignments, random_priced
from tests.planner.partitioners.hand_priced import Option, everywhere, hand_priced, on_host, on_rank

OPTIONS = (
    Option(0, (on_rank(4, 1, num_bytes=6),)),
    Option(0, (on_rank(2, 1, num_bytes=3), on_rank(2, 1, num_bytes=3)), same_host=True),
    Option(1, (on_host(1, 2, num_bytes=4),)),
    Option(1, (everywhere(1, 0, num_bytes=3),)),
    Option(1, (on_rank(5, 1, num_bytes=8),)),
)


def solve(
    priced: PricedOptions, *, bound_seconds: float = 0.0, only: Assignment | None = None
) -> tuple[cp_model.CpSolverStatus, float, Assignment | None]:
    """Solve with ticks of one second; ``only`` fixes every hinted variable to an assignment."""
    ticks = (priced.unit_seconds * priced.phase_weight).astype(np.int64)
    if priced.objective is Objective.MAX_RANK_TIME:
        ticks = ticks.sum(axis=1, keepdims=True)
    model = cp_model.CpModel()
    variables = build(model, priced, ticks, 1.0, bound_seconds)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if only is not None:
        hint(model, priced, variables, only, ticks, 1.0)
        solver.parameters.fix_variables_to_their_hinted_value = True
    status = solver.solve(model)
    if status != cp_model.OPTIMAL:
        return status, float("inf"), None
    return status, solver.objective_value, read(priced, variables, solver.boolean_value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"capacity": 7.0},  # table 0 whole and a host piece do not share a rank
        {"forbidden": ((0, 0), (1, 3))},
        {"apart": ((0, 1),)},
        {"objective": Objective.MAX_RANK_TIME},
        {"window": (1.0, 0.0)},
        {"weight": (1.0, 0.0)},
    ],
    ids=str,
)
def test_every_assignment_is_judged_as_evaluation_judges_it(settings: dict[str, object]) -> None:
    """All combinations of options and sites, fixed one after the other: legal ones with their exact cost."""
    made = hand_priced(*OPTIONS, **settings)  # type: ignore[arg-type]
    priced = restrict(made, ~unusable_options(made))  # as every problem that is searched
    legal = 0
    for assignment in all_assignments(priced):
        status, cost, found = solve(priced, only=assignment)
        if violations(priced, assignment):
            assert status == cp_model.INFEASIBLE
            continue
        legal += 1
        assert status == cp_model.OPTIMAL
        assert found is not None
        assert cost == objective_seconds(priced, rank_loads(priced, assignment).seconds)
        np.testing.assert_array_equal(found.chosen_option, assignment.chosen_option)
        np.testing.assert_array_equal(found.unit_site, assignment.unit_site)
    assert legal > 3


def test_same_rank_groups() -> None:
    """Apart, two tables of 3 s take 3 s; together 6 s."""
    options = (Option(0, (on_rank(3.0),)), Option(1, (on_rank(3.0),)))
    assert solve(hand_priced(*options))[1] == 3
    priced = hand_priced(*options, same_rank=((0, 1),))
    _, cost, found = solve(priced)
    assert cost == 6
    assert found is not None
    assert found.unit_site[0] == found.unit_site[1]


def test_a_fraction_of_a_byte_is_rounded_against_the_plan() -> None:
    """Two tables of 4.5 bytes on ranks of 9.5 are counted as 5 + 5: they get a rank each."""
    options = (Option(0, (on_rank(0.0, num_bytes=4.5),)), Option(1, (on_rank(1.0, num_bytes=4.5),)))
    priced = hand_priced(*options, capacity=9.5, num_hosts=1)
    _, _, found = solve(priced)
    assert found is not None
    assert found.unit_site[0] != found.unit_site[1]


def test_more_memory_than_integers_hold() -> None:
    priced = replace(hand_priced(*OPTIONS), capacity_bytes=np.full((4, 1), 1e30))
    assert solve(priced)[0] == cp_model.OPTIMAL


def test_a_bound_is_kept_with_room_for_rounding() -> None:
    """The optimum with its own value as a bound, and with one that is too high by less than the rounding.

    2 pieces at most x 2 tables, and the window: 5 ticks in each of 2 phases.
    """
    priced = hand_priced(*OPTIONS)
    best = solve(priced)[1]
    assert solve(priced, bound_seconds=best)[1] == best
    assert solve(priced, bound_seconds=best + 10)[1] == best
    assert solve(priced, bound_seconds=best + 11)[1] == best + 1  # as if nothing below were worth a look


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(3))
def test_a_hint_is_a_whole_solution(objective: Objective, seed: int) -> None:
    """With fractions of seconds rounded down and windows rounded up, no variable contradicts another."""
    priced = random_priced(seed, num_tables=2, objective=objective, windows=True)
    start = next(a for a in all_assignments(priced) if not violations(priced, a))
    status, cost, _ = solve(priced, only=start)
    assert status == cp_model.OPTIMAL
    assert cost <= objective_seconds(priced, rank_loads(priced, start).seconds)


def test_a_same_host_option_that_no_host_holds() -> None:
    """Each rank holds one piece of 6, each host has one rank: the option is there and never chosen."""
    pieces = (on_rank(1.0, num_bytes=6), on_rank(1.0, num_bytes=6))
    priced = hand_priced(Option(0, pieces, same_host=True), Option(0, (on_rank(9.0),)), capacity=10, ranks_per_host=1)
    _, cost, found = solve(priced)
    assert cost == 9
    assert found is not None
    assert found.chosen_option.tolist() == [1]
