"""Cutoffs: a solve ends with the plan that it has once its bound proves that none is below a value, and only then."""

from dataclasses import replace

import pytest

from cost_models.protocol import CostModel
from cost_models.vocabulary import Scheme
from planner.domain.plan.plan import Plan, PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.stash import Stash
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.orchestration.limits.stash_rooms import solve_with_stash
from planner.orchestration.placement.stash import NoStash
from planner.pipeline import plan
from planner.pricing.price_options import price, prune
from planner.solver.bounds.chain import quick_bound
from planner.solver.partitioners.base import CUTOFF, NO_OPTIONS, SearchOptions, SolveLimits
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.problem import Outcome, SolverProblem
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.serving_problems import SERVING, serving_problem
from tests.support.planning.whole_plan import whole_plan

#: Counted work ends the search; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.2, relative_gap=0.0)


class Counting(LocalSearch):
    """The local search, and how often it was asked."""

    def __init__(self) -> None:
        self.num_searches = 0

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        self.num_searches += 1
        return super().solve(priced, limits, options)


def job(**hardware: float) -> Problem:
    tables = [make_table(f"t{i}", rows=100_000, dim=64, pooling_factor=2.0 + 3 * i) for i in range(9)]
    return make_problem(*tables, cluster=make_cluster(1, 4, **hardware), batch_size_per_rank=4096)


#: A job whose plans pay for the sharding types that they use.
STARTS = {"kernel_launch_seconds": 1e-5, "intra_host_latency_seconds": 1e-5}


def solved(
    problem: Problem, cutoff_seconds: float | None = None, cost_model: CostModel = ROOFLINE, **limits: float
) -> tuple[PlanResult, int]:
    partitioner = Counting()
    within = replace(LIMITS, cutoff_seconds=cutoff_seconds, **limits)
    result = plan(problem, cost_model=cost_model, partitioner=partitioner, limits=within)
    return result, partitioner.num_searches


def the_plan(result: PlanResult) -> Plan:
    assert result.plan is not None
    return result.plan


def assert_cut_off(result: PlanResult, cutoff_seconds: float) -> None:
    found = the_plan(result)
    assert (found.reason, found.limit) == ("FEASIBLE", CUTOFF)
    assert f"{cutoff_seconds:g}" in found.detail
    assert cutoff_seconds <= found.lower_bound_seconds <= found.evaluation.objective_seconds


@pytest.mark.parametrize("hardware", [{}, STARTS], ids=["additive", "with starts"])
def test_no_search_begins_once_no_plan_is_below(hardware: dict[str, float]) -> None:
    problem = job(**hardware)
    free, num_searches = solved(problem)
    assert num_searches > 0
    cutoff = the_plan(free).lower_bound_seconds * (1 - 1e-6)
    result, num_searches = solved(problem, cutoff)
    assert num_searches == 0
    assert_cut_off(result, cutoff)


def test_the_cheap_bound_is_asked_before_the_relaxation(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = job()
    cheap = quick_bound(prune(price(problem, enumerate_families(problem), ROOFLINE)))

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the relaxation was solved")

    monkeypatch.setattr("planner.orchestration.explore.lower_bound", never)
    monkeypatch.setattr("planner.orchestration.family_sets.branch_kinds.lower_bound", never)
    assert_cut_off(solved(problem, 0.9 * cheap)[0], 0.9 * cheap)


@pytest.mark.parametrize("hardware", [{}, STARTS], ids=["additive", "with starts"])
def test_a_plan_below_the_cutoff_is_the_plan_without_one(hardware: dict[str, float]) -> None:
    problem = job(**hardware)
    free, searches = solved(problem)
    seconds = the_plan(free).evaluation.objective_seconds
    within, searches_within = solved(problem, seconds * 1.001)
    assert the_plan(within).placement == the_plan(free).placement
    assert (within.limit, within.detail, within.lower_bound_seconds) == (
        free.limit,
        free.detail,
        free.lower_bound_seconds,
    )
    assert searches_within == searches


def test_a_cutoff_between_bound_and_plan_proves_nothing() -> None:
    problem = job(**STARTS)
    free, _ = solved(problem)
    found = the_plan(free)
    between = (found.lower_bound_seconds + found.evaluation.objective_seconds) / 2
    assert found.lower_bound_seconds < between < found.evaluation.objective_seconds
    result, num_searches = solved(problem, between)
    assert num_searches > 0
    assert result.limit != CUTOFF
    assert the_plan(result).placement == found.placement


def test_a_first_plan_within_the_gap_is_proven_and_not_cut_off() -> None:
    result, _ = solved(job(), 1e-9, relative_gap=1.0)
    assert (the_plan(result).reason, result.limit) == ("OPTIMAL", None)


def grouped() -> Problem:
    cluster = make_cluster(2, 4)
    groups = ReplicaGroups(job=cluster, sizes=ReplicaGroups.sizes_of(cluster, contiguous=False), sync_interval_steps=10)
    return replace(job(), cluster=cluster, replica_groups=groups)


def test_no_size_of_groups_is_searched_once_none_is_below() -> None:
    free, _ = solved(grouped())
    cutoff = the_plan(free).lower_bound_seconds * (1 - 1e-6)
    result, num_searches = solved(grouped(), cutoff)
    assert num_searches == 0
    assert_cut_off(result, cutoff)
    assert all(one.lower_bound_seconds >= cutoff for one in the_plan(result).group_sizes)


def test_a_size_that_may_be_below_is_searched_and_the_plan_stays_as_it_was() -> None:
    free, _ = solved(grouped())
    seconds = the_plan(free).evaluation.objective_seconds
    result, num_searches = solved(grouped(), seconds * 1.001)
    assert num_searches > 0
    assert the_plan(result).placement == the_plan(free).placement
    assert result.limit != CUTOFF


#: Whole tables that fit six cards evenly, and that are not spread evenly if the largest go first.
WHOLE = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
CARDS = [
    make_table(f"t{i}", dim=64, pooling_factor=float(size), constraints=WHOLE)
    for i, size in enumerate([11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 6])
]


def test_requests_have_a_cutoff_of_their_latency() -> None:
    """The cutoff is that of the objective: messages, which no search counts, are a part of it."""
    problem = serving_problem(*CARDS)
    free, _ = solved(problem, cost_model=SERVING)
    cutoff = the_plan(free).lower_bound_seconds * (1 - 1e-6)
    assert_cut_off(solved(problem, cutoff, SERVING)[0], cutoff)


def test_a_plan_that_requests_come_too_fast_for_is_no_answer() -> None:
    """A first plan that does not sustain the rate is not kept because of a cutoff: searches go on to one that does."""
    problem = serving_problem(*CARDS)
    free = the_plan(solved(problem, cost_model=SERVING)[0])
    assert problem.serving is not None
    rate = problem.serving.utilization_limit / free.evaluation.objective_seconds * 0.9999
    cutoff = free.lower_bound_seconds * (1 - 1e-6)
    assert the_plan(solved(problem, cutoff, SERVING)[0]).evaluation.objective_seconds * rate > (
        problem.serving.utilization_limit
    )
    fast = replace(problem, serving=replace(problem.serving, requests_per_second=rate))
    result, _ = solved(fast, cutoff, SERVING)
    assert the_plan(result).evaluation.objective_seconds * rate <= problem.serving.utilization_limit * (1 + 1e-9)


class Stashing:
    """Fails once, since its first plan does not make the room, then ends as a search with this limit."""

    def __init__(self, bound_seconds: float, limit: str) -> None:
        self._bound_seconds, self._limit = bound_seconds, limit
        self.cutoffs: list[float | None] = []

    def __call__(self, problem: Problem, limits: SolveLimits, is_reported: bool) -> PlanResult:
        self.cutoffs.append(limits.cutoff_seconds)
        if len(self.cutoffs) == 1:
            raise NoStash(self._bound_seconds)
        found = replace(whole_plan(), lower_bound_seconds=0.95, reason="FEASIBLE", limit=self._limit, detail="why")
        return PlanResult(plan=found, reason="FEASIBLE", limit=self._limit, detail="why", lower_bound_seconds=0.95)


@pytest.mark.parametrize(("bound_seconds", "later", "limit"), [(0.8, [0.7], CUTOFF), (0.6, [None, None], "stash")])
def test_less_room_for_a_stash_is_cut_off_by_the_bound_of_the_most(
    bound_seconds: float, later: list[float | None], limit: str
) -> None:
    searches = Stashing(bound_seconds, CUTOFF if limit == CUTOFF else "deterministic_time")
    limits = replace(LIMITS, cutoff_seconds=0.7)
    result = solve_with_stash(make_problem(stash=Stash()), limits, searches)
    assert searches.cutoffs == [0.7, *later]
    assert (result.limit, result.lower_bound_seconds) == (limit, bound_seconds)


def test_a_cutoff_is_more_than_nothing() -> None:
    with pytest.raises(ValueError, match="cutoff_seconds > 0"):
        SolveLimits(cutoff_seconds=0.0)
