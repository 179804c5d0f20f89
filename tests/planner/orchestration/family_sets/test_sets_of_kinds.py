"""Whole solves of tiny problems with starts: the best plan over all kinds is found, and no bound exceeds it."""

import itertools
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from cost_models.vocabulary import Scheme
from planner.domain.plan.movement import PreviousPlan
from planner.domain.problem.problem import Dense, Problem
from planner.options.compatible_families import compatible_family_sets
from planner.options.enumerate import enumerate_families
from planner.orchestration import explore as solve_module
from planner.orchestration.family_sets import sets_of_kinds as sets_of_kinds_module
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.family_set import FamilySet
from planner.orchestration.family_sets.kind_sets import without_replaced_kinds
from planner.orchestration.family_sets.sets_of_kinds import SetsOfKinds
from planner.pipeline import plan
from planner.pricing.price_options import drop_unusable, price, restrict
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Assignment
from planner.verification.evaluate_placement import score
from tests.support.planning.begun_solves import BegunSolve, begun_solve
from tests.support.planning.builders import ROOFLINE, brute_force, make_cluster, make_problem, make_table
from tests.support.thorough import THOROUGH

MICRO = 1e-6
LIMITS = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.5, relative_gap=0.0)


def tiny(seed: int, **changes: object) -> Problem:
    """Two or three tables on a host of three ranks, or on two of two, with starts from none to most of a step."""
    latency = (1, 5, 20)[seed % 3] * MICRO
    hosts, ranks = ((1, 3), (2, 2))[seed % 2]
    rows, pooling = (500 + 701 * seed % 4001, 900 + 1301 * seed % 3001, 40), ("sum", "mean", "sum")
    tables = [
        make_table(
            f"t{index}",
            rows[index],
            (32, 64, 16)[(seed + index) % 3],
            pooling_factor=(2.0, 20.0, 5.0)[(seed // 2 + index) % 3],
            pooling=pooling[(seed + index) % 3],
            module_path="ab"[(seed // 4 * index) % 2],
        )
        for index in range(2 + (seed % 2 == 0))
    ]
    cluster = make_cluster(hosts, ranks, intra_host_latency_seconds=latency, inter_host_latency_seconds=2 * latency)
    settings = {
        "objective": ("step_time", "max_rank_time")[seed // 3 % 2],
        "pipeline": ("none", "train_sparse_dist")[seed // 2 % 2],
        "dense": Dense(forward_seconds=(None, 10 * MICRO)[seed // 3 % 2]),
        "batch_size_per_rank": 512,
    }
    return make_problem(*tables, cluster=cluster, **(settings | changes))


def optimum(problem: Problem) -> float:
    """The best objective, by trying all plans of every mode."""
    families = enumerate_families(problem)
    priced = price(problem, families, ROOFLINE)
    assert priced.num_kinds > 0
    found = [brute_force(restrict(priced, mask)) for mask in compatible_family_sets(problem, families).masks]
    return min(one for one in found if one is not None)


@pytest.mark.parametrize("seed", range(36 if THOROUGH else 4))
def test_the_best_plan_over_all_kinds_is_found(seed: int) -> None:
    problem = tiny(seed)
    best, found = optimum(problem), plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS)
    assert found.plan is not None
    assert found.plan.evaluation.objective_seconds == pytest.approx(best, rel=1e-6)
    assert found.lower_bound_seconds <= best * (1 + 1e-9)
    assert found.lower_bound_seconds >= 0.7 * best  # three tables on three ranks can hardly be even


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 2))
def test_no_plan_that_is_streamed_beats_a_bound(seed: int) -> None:
    problem, seen = tiny(seed), []
    best = optimum(problem)
    plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS, on_result=seen.append)
    assert seen
    for one in seen:
        assert one.lower_bound_seconds <= best * (1 + 1e-9) <= one.plan.evaluation.objective_seconds * (1 + 2e-9)


@pytest.mark.parametrize("seed", range(8 if THOROUGH else 2))
def test_plans_repeat(seed: int) -> None:
    problem = tiny(seed)
    one, other = (plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS) for _ in range(2))
    assert one.plan is not None
    assert other.plan is not None
    assert one.plan.placement == other.plan.placement
    assert one.lower_bound_seconds == other.lower_bound_seconds


def long_one(latency: float, *, counts_starts: bool = True) -> Problem:
    """Sixteen like tables on eight ranks and one long one, which rows over all ranks would balance."""
    tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=10.0, module_path="a") for i in range(16)]
    tables.append(make_table("long", 60_000, 64, pooling_factor=60.0, module_path="a"))
    cluster = make_cluster(1, 8, intra_host_latency_seconds=latency)
    settings = {"batch_size_per_rank": 1024, "pipeline": "train_sparse_dist", "counts_starts": counts_starts}
    return make_problem(*tables, cluster=cluster, **settings)


def test_a_kind_is_opened_only_where_it_pays() -> None:

    def schemes(latency: float) -> set[Scheme]:
        found = plan(long_one(latency), cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS)
        assert found.plan is not None
        return {one.sharding_type for one in found.plan.placement.tables}

    assert len(schemes(1e-9)) > 1
    assert len(schemes(1e-3)) == 1


@pytest.mark.parametrize(
    ("module", "part", "counts_starts"),
    [
        (sets_of_kinds_module, "_FIRST_UNTIL", True),
        (solve_module, "_BOUNDED_UNTIL", True),
        (solve_module, "_BOUNDED_UNTIL", False),
    ],
)
def test_a_clock_that_leaves_sets_or_boxes_out_is_named(
    module: ModuleType, part: str, counts_starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, limits = long_one(1e-5, counts_starts=counts_starts), replace(LIMITS, time_limit_seconds=1000.0)
    assert plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits).limit != "time"
    monkeypatch.setattr(module, part, 0.0)
    assert plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits).limit == "time"


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 2))
@pytest.mark.parametrize("is_counted", [True, False])
def test_a_replan_is_never_worse_than_staying(seed: int, is_counted: bool) -> None:
    """From a plan that was made with other starts; also where the first plan paid none."""
    before = tiny(seed, counts_starts=is_counted)
    first = plan(before, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert first is not None
    slower = make_cluster(
        before.cluster.num_hosts,
        before.cluster.ranks_per_host,
        intra_host_latency_seconds=40 * MICRO,
        inter_host_latency_seconds=50 * MICRO,
    )
    problem = replace(before, cluster=slower, counts_starts=True)
    for gain, steps, most in itertools.product((0.0, 0.05), (10, 10**6), (None, 0)):
        previous = PreviousPlan(
            placement=first.placement, digest="d", remaining_steps=steps, min_relative_gain=gain, max_moved_bytes=most
        )
        seen = []
        found = plan(
            problem,
            cost_model=ROOFLINE,
            partitioner=Portfolio(),
            limits=replace(LIMITS, work_limit_seconds=0.1),
            previous=previous,
            on_result=seen.append,
        )
        staying = score(problem, first.placement, ROOFLINE).objective_seconds
        assert found.plan is not None
        moved = found.plan.movement
        assert moved is not None
        assert moved.previous_seconds == pytest.approx(staying, rel=1e-12)
        assert found.plan.evaluation.objective_seconds + moved.charged_seconds <= staying * (1 + 1e-9)
        assert most is None or moved.moved_bytes == 0


def found_by(solve: BegunSolve, max_boxes: int, bounded: Deadline) -> SetsOfKinds:
    """Return the sets of kinds of a solve."""
    (mask,) = compatible_family_sets(solve.context.problem, solve.context.families).masks
    usable = without_replaced_kinds(drop_unusable(restrict(solve.priced, mask)))
    return sets_of_kinds_module.sets_of_kinds(
        solve.context, [usable], [solve.first], solve.reporter, lambda _: max_boxes, bounded
    )


def test_sets_that_are_searched_know_what_all_their_plans_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for sets so small that an exact search proves something of all their plans."""
    solve, is_over = begun_solve(long_one(1e-6), LIMITS), Deadline(0.0)  # no set is relaxed but the one of all plans
    context = solve.context

    def searched(provable: int) -> FamilySet:
        monkeypatch.setattr(sets_of_kinds_module, "_PROVABLE", provable)
        found = found_by(solve, 1, is_over)
        (leaf,) = found.leaves
        assert leaf.plans[0].seconds == min(one.seconds for one in found.tried)
        (one,) = found.worth_searching(context, float("inf"))
        assert one.bound.seconds >= leaf.family_set.bound.seconds
        return one

    decided, as_it_is = searched(0), searched(10**9)
    assert np.all(decided.priced.charged_kinds[np.unique(decided.priced.family_kind)])
    assert not np.all(as_it_is.priced.charged_kinds[np.unique(as_it_is.priced.family_kind)])


def test_of_all_other_sets_the_most_promising_one_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not one that has been looked at, whatever the relaxation of all sets takes."""
    monkeypatch.setattr(sets_of_kinds_module, "_PROVABLE", 0)
    solve = begun_solve(long_one(1e-6), LIMITS)
    found = found_by(solve, 400, solve.context.deadline)
    others = [leaf for leaf in found.leaves if leaf.kinds.elsewhere]
    assert others
    for leaf in others:
        decided = sets_of_kinds_module._decided(solve.context, leaf, Deadline())  # noqa: SLF001
        assert decided.priced.charged_kinds.tobytes() not in leaf.kinds.elsewhere


def test_sets_begin_with_the_best_plan_that_they_hold() -> None:
    """Whatever other plans they hold, too."""
    solve = begun_solve(long_one(1e-6), LIMITS)
    context, first = solve.context, solve.first
    good = first.outcome.assignment
    assert good is not None
    bad = Assignment(piece_shape=good.piece_shape, piece_site=np.zeros_like(good.piece_site))
    worse = FamilySet(priced=first.priced, outcome=replace(first.outcome, assignment=bad), bound=first.bound)
    assert worse.seconds > first.seconds
    assert worse.better(first.outcome).assignment is good
    assert first.better(worse.outcome).assignment is good
    found = sets_of_kinds_module._with_best(context, first.priced, first.bound, [first, worse])  # noqa: SLF001
    assert found.seconds == first.seconds


def test_no_set_gets_a_bound_once_no_time_is_left_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes a leaf with its open kinds, and the solve says that the clock ended work."""
    monkeypatch.setattr(sets_of_kinds_module, "_PROVABLE", 0)
    solve = begun_solve(long_one(1e-6), LIMITS)
    found = found_by(solve, 1, Deadline())
    assert not found.is_cut_by_clock
    leaf = next(leaf for leaf in found.leaves if not leaf.kinds.is_decided)
    slow = replace(solve.context, listed_seconds=LIMITS.time_limit_seconds)  # so much that a bound would take too long
    assert sets_of_kinds_module._decided(slow, leaf, found.bounded) is not leaf.family_set  # noqa: SLF001
    late = replace(found, bounded=Deadline(0.0))
    assert sets_of_kinds_module._decided(solve.context, leaf, late.bounded) is not leaf.family_set  # noqa: SLF001
    assert not late.is_cut_by_clock
    assert sets_of_kinds_module._decided(slow, leaf, late.bounded) is leaf.family_set  # noqa: SLF001
    assert late.is_cut_by_clock


def test_no_first_plan_is_looked_for_in_sets_that_exceed_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = begun_solve(long_one(1e-6), LIMITS)

    def num_tried(exceeds: bool) -> int:
        monkeypatch.setattr(sets_of_kinds_module, "exceed_memory", lambda _: exceeds)
        return len(found_by(solve, 1, Deadline()).tried)

    assert num_tried(exceeds=False) > 1
    assert num_tried(exceeds=True) == 1


def test_a_first_plan_that_the_clock_cut_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = begun_solve(long_one(1e-6), LIMITS)
    assert not found_by(solve, 1, Deadline()).is_cut_by_clock
    cut = replace(solve.first, outcome=replace(solve.first.outcome, limit="time"))
    monkeypatch.setattr(sets_of_kinds_module, "first_plan", lambda *_: cut)
    assert found_by(solve, 1, Deadline()).is_cut_by_clock
