"""How the long searches share the limit of a solve: equal work for each set, none for sets that hold nothing better."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from planner.orchestration import explore as solving
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.family_set import FamilySet
from planner.orchestration.family_sets.kind_sets import KindSet
from planner.orchestration.family_sets.sets_of_kinds import Leaf, SetsOfKinds
from planner.solver.bounds.chain import Bound
from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import NO_OPTIONS, SearchOptions, SolveLimits
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem
from tests.support.planning.begun_solves import BegunSolve, begun_solve
from tests.support.planning.builders import make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=100.0, work_limit_seconds=8.0, relative_gap=0.0)


@dataclass
class Noting:
    """A partitioner that finds the plans it is given, at once, and notes its limits."""

    finds: list[Assignment | None]
    limits: list[SolveLimits] = field(default_factory=list)
    name: str = "noting"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        self.limits.append(limits)
        found = self.finds.pop(0) if self.finds else None
        if found is None:
            return Outcome.without_plan("", "deterministic_time")
        return Outcome(assignment=found, reason=Reason.FEASIBLE, partitioner=self.name)


def begun() -> BegunSolve:
    """A solve of tables that may be cut in several ways."""
    tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=10.0 + 5 * i) for i in range(6)]
    return begun_solve(make_problem(*tables, cluster=make_cluster(1, 4, intra_host_latency_seconds=1e-6)), LIMITS)


def alike(solve: BegunSolve, *bounds: float) -> list[FamilySet]:
    """Sets of the same plans with these bounds, in parts of the first plan's seconds."""
    first = solve.first
    return [
        replace(first, bound=Bound(seconds=bound * first.seconds, hint=None))  # type: ignore[type-var]
        for bound in bounds
    ]


def search(solve: BegunSolve, *finds: Assignment | None) -> tuple[solving._Search, Noting]:
    partitioner = Noting(list(finds))
    return solving._Search(solve.context, partitioner, solve.reporter), partitioner  # noqa: SLF001


def test_sets_get_equal_work_and_the_last_ones_all_time_that_is_left() -> None:
    solve = begun()
    searching, seen = search(solve)
    assert searching.each(alike(solve, 0.5, 0.6), 0.5, is_last=False) == pytest.approx(0.5)
    assert [one.work_seconds for one in seen.limits] == pytest.approx([0.25 * 0.5 * 8.0] * 2)
    times = [one.time_limit_seconds for one in seen.limits]
    assert times[0] == pytest.approx(25.0, rel=0.05)
    assert times[1] == pytest.approx(50.0, rel=0.05)  # the first one left its half of the time unused
    searching.each(alike(solve, 0.5), 0.5)
    assert seen.limits[-1].time_limit_seconds == pytest.approx(100.0, rel=0.1)
    assert seen.limits[-1].work_seconds == pytest.approx(0.5 * 0.5 * 8.0)


def better_plan(solve: BegunSolve) -> tuple[FamilySet, Assignment, float]:
    """A bad first plan, a better one, and its seconds in parts of the bad one's."""
    good = solve.first.outcome.assignment
    assert good is not None
    priced = solve.first.priced
    bad = Assignment(piece_shape=good.piece_shape, piece_site=np.zeros_like(good.piece_site))
    worse = FamilySet(priced=priced, outcome=replace(solve.first.outcome, assignment=bad), bound=solve.first.bound)
    return worse, good, objective_of(priced, good) / objective_of(priced, bad)


def test_sets_that_hold_nothing_better_than_what_was_found_are_left_out() -> None:
    solve = begun()
    worse, good, ratio = better_plan(solve)
    assert ratio < 0.9
    sets = alike(replace(solve, first=worse), 0.1, (1 + ratio) / 2, 0.2)
    searching, seen = search(solve, good)
    assert searching.each(sets, 1.0) == pytest.approx(1.0)
    # A third of the work found the plan; the second set was passed by, and the third one has all that is left.
    assert [one.work_seconds for one in seen.limits] == pytest.approx([0.5 * 8.0 / 3, 0.5 * 8.0 * 2 / 3])


def leaf_of(one: FamilySet) -> Leaf:
    """A leaf of which all plans use the same kinds."""
    kinds = np.ones(one.priced.num_kinds, dtype=np.bool_)
    return Leaf(
        family_set=one,
        kinds=KindSet(priced=one.priced, allowed=kinds, required=kinds, bound=one.bound),
        usable=one.priced,
        plans=[one],
    )


def test_what_sets_leave_of_the_work_is_spent_on_the_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.orchestration.family_sets.sets_of_kinds._CLOSE_BOUNDS", 1e9)
    solve = begun()
    worse, good, ratio = better_plan(solve)
    found = replace(solve, first=worse)

    leaves = [leaf_of(one) for one in alike(found, 0.1, (1 + ratio) / 2, (2 + ratio) / 3)]
    searching, seen = search(solve, good)
    searching.best_of(SetsOfKinds(tried=[], leaves=leaves, is_first_cut=False, bounded=Deadline()))
    share = 0.5 / 3
    assert [one.work_seconds for one in seen.limits] == pytest.approx([0.5 * 8.0 * share, 0.5 * 8.0 * (1 - share)])


def test_a_set_whose_bound_is_far_above_the_least_one_is_not_searched() -> None:
    """The search of the set with the least bound takes all the work."""
    solve = begun()
    leaves = [leaf_of(one) for one in alike(solve, 0.5, 0.51, 0.9)]
    searching, seen = search(solve)
    searching.best_of(SetsOfKinds(tried=[], leaves=leaves[::2], is_first_cut=False, bounded=Deadline()))
    assert [one.work_seconds for one in seen.limits] == pytest.approx([0.5 * 8.0])
    searching, seen = search(solve)
    searching.best_of(SetsOfKinds(tried=[], leaves=leaves, is_first_cut=False, bounded=Deadline()))
    assert len(seen.limits) == 3, "the two that are close, and the better one of them again"


def test_a_set_without_a_bound_is_searched() -> None:
    """Where all of a step may be hidden, nothing is known of any plan."""
    solve = begun()
    leaves = [leaf_of(one) for one in alike(solve, 0.0)]
    searching, seen = search(solve)
    searching.best_of(SetsOfKinds(tried=[], leaves=leaves, is_first_cut=False, bounded=Deadline()))
    assert [one.work_seconds for one in seen.limits] == pytest.approx([0.5 * 8.0])


def test_no_search_begins_after_its_time_if_a_plan_is_known() -> None:
    """The plan says that the clock ended work; a solve without a plan is searched all the same."""
    solve = begun()
    late = replace(solve, context=replace(solve.context, began_seconds=0.0))
    searching, seen = search(late)
    sets = alike(late, 0.5, 0.6)
    searching.each(sets, 1.0)
    assert not seen.limits
    assert [one.outcome.limit for one in sets] == ["time", "time"]
    for one in sets:
        one.outcome = Outcome.without_plan("", None)
    searching.each(sets, 1.0)
    assert len(seen.limits) == 2


def test_searches_end_in_time_for_the_plan_to_be_finished() -> None:
    """As long before the limit as listing and pricing took, within a hundredth and a fifth of it."""
    context = begun().context

    def reserved_seconds(listed_seconds: float) -> float:
        some = replace(context, listed_seconds=listed_seconds)
        return some.end.until_seconds - some.deadline.until_seconds

    assert reserved_seconds(0.0) == pytest.approx(1.0)
    assert reserved_seconds(7.0) == pytest.approx(7.0)
    assert reserved_seconds(70.0) == pytest.approx(20.0)
