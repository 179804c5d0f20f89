"""From problem to plan; what a defective partitioner returns never leaves."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.errors import SolverDefect
from planner.orchestration import explore as exploring
from planner.orchestration.answers import finish_plan as finishing
from planner.orchestration.answers.finish_plan import within_bound
from planner.orchestration.family_sets import family_set
from planner.pipeline import plan
from planner.solver.bounds.chain import Bound, lower_bound
from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import NO_OPTIONS, Partitioner, SearchOptions, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.partitioners.registry import make_partitioner, partitioner_names
from planner.solver.problem import Assignment, Outcome, Reason, Scope, SolverProblem
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.long_plans import to_document
from tests.support.thorough import thorough

#: Of which counted work is a part, so that searches end well before it.
LIMITS = SolveLimits(time_limit_seconds=1.0)
#: For what ends with a proof, long before the limit, also on a busy machine.
LONG = SolveLimits(time_limit_seconds=10.0)


def solve(problem: Problem, partitioner: Partitioner | None = None, limits: SolveLimits = LIMITS) -> PlanResult:
    return plan(problem, cost_model=ROOFLINE, partitioner=partitioner or Portfolio(), limits=limits)


def small_problem(**changes: object) -> Problem:
    tables = [make_table(f"t{i}", rows=10 ** (3 + i % 4), dim=(64, 128, 256)[i % 3]) for i in range(7)]
    return make_problem(*tables, cluster=make_cluster(2, 2), **changes)


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
@pytest.mark.parametrize("name", partitioner_names())
def test_every_partitioner_gives_a_verified_plan_with_a_bound(objective: str, name: str) -> None:
    problem = small_problem(objective=objective)
    result = solve(problem, make_partitioner(name))
    assert result.plan is not None
    assert verify(problem, result.plan.placement) == ()
    assert 0 < result.plan.lower_bound_seconds <= result.plan.evaluation.objective_seconds
    want = result.plan.evaluation.objective_seconds / result.plan.lower_bound_seconds - 1
    assert result.plan.relative_gap == pytest.approx(want, abs=1e-12)


def test_a_plan_within_the_gap_is_optimal() -> None:
    result = solve(small_problem(), limits=replace(LONG, relative_gap=0.3))
    assert result.reason == "OPTIMAL"
    assert result.limit is None


def test_equal_problems_give_equal_bytes() -> None:
    """Counted work decides when the search ends; the clock is far away, however busy the machine."""
    limits = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=0.5)
    documents = []
    for _ in range(2):
        result = solve(small_problem(), limits=limits)
        assert result.plan is not None
        document = to_document(result.plan, name="x", spec_digest="sha256:0", hardware_profile="test")
        assert isinstance(document["provenance"], dict)
        for of_the_clock in ("solver_seconds", "found_seconds", "late_gain_seconds"):
            document["provenance"].pop(of_the_clock)
        documents.append(json.dumps(document))
    assert documents[0] == documents[1]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a partitioner is given besides the problem."""

    limits: SolveLimits
    options: SearchOptions


class Scripted:
    """A partitioner that returns what it is told to."""

    name = "scripted"

    def __init__(self, outcome_of: Callable[[SolverProblem, SolveLimits], Outcome]) -> None:
        self._outcome_of = outcome_of
        self.heard: list[Heard] = []

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        self.heard.append(Heard(limits, options))
        return self._outcome_of(priced, limits)


@thorough
def test_a_search_leaves_the_time_in_which_two_plans_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one takes is known from the first plan, which is finished before the search; and a little for the rest."""

    def slow_verify(*arguments: object, **options: object) -> object:
        time.sleep(3.0)
        return verify(*arguments, **options)

    monkeypatch.setattr(finishing, "verify", slow_verify)
    scripted = Scripted(lambda priced, limits: Greedy().solve(priced, limits))
    limits = SolveLimits(time_limit_seconds=600.0, relative_gap=0.0)
    problem = small_problem()
    result = plan(problem, cost_model=ROOFLINE, partitioner=scripted, limits=limits, on_result=lambda _: None)
    assert result.plan is not None
    (heard,) = scripted.heard
    assert 0 < heard.limits.time_limit_seconds < 600.0 * 0.99 - 3 * 3.0 + 1e-6


def test_a_search_that_begins_without_a_plan_has_half_of_the_limit_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first plan and the bound took."""

    class Late:
        def __init__(self, **_: object) -> None:
            pass

        def solve(self, *_: object) -> Outcome:
            time.sleep(0.06)
            return Outcome.without_plan("greedy", "time")

    monkeypatch.setattr(family_set, "Greedy", Late)
    scripted = Scripted(lambda priced, limits: Greedy().solve(priced, limits))
    limits = SolveLimits(time_limit_seconds=0.05, relative_gap=0.0)
    assert plan(small_problem(), cost_model=ROOFLINE, partitioner=scripted, limits=limits).plan is not None
    (heard,) = scripted.heard
    assert heard.limits.time_limit_seconds == 0.025


def test_found_in_is_when_the_plan_was_found_whatever_the_search_took_after_that() -> None:
    """A search that returns an equal plan late found it when the first one was found; a better one, when it says."""

    def late(priced: SolverProblem, limits: SolveLimits) -> Outcome:
        found = Greedy(first_of_few=True).solve(priced, limits)
        time.sleep(0.05)
        return found

    limits = SolveLimits(time_limit_seconds=600.0, relative_gap=0.0)
    found = plan(small_problem(), cost_model=ROOFLINE, partitioner=Scripted(late), limits=limits).plan
    assert found is not None
    assert found.found_seconds is not None
    assert 0 < found.found_seconds <= found.solver_seconds - 0.05
    best = plan(small_problem(), cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert best is not None
    assert best.found_seconds is not None
    assert 0 < best.found_seconds <= best.solver_seconds


def all_on_rank_0(priced: SolverProblem, limits: SolveLimits) -> Outcome:
    """Greedy's plan with every table that has a choice of rank on the first one."""
    outcome = Greedy().solve(priced, limits)
    assert outcome.assignment is not None
    shape, sites = outcome.assignment.piece_shape, outcome.assignment.piece_site.copy()
    sites[priced.shape_scope[shape] == Scope.RANK] = 0
    crowded = Assignment(piece_shape=shape.copy(), piece_site=sites)
    return replace(outcome, assignment=crowded)


def boastful(priced: SolverProblem, limits: SolveLimits) -> Outcome:
    """Greedy's plan, with a bound far above it."""
    return replace(Greedy().solve(priced, limits), bound_seconds=1e9)


def hopeless(priced: SolverProblem, limits: SolveLimits) -> Outcome:
    """Calls everything infeasible."""
    return Outcome(assignment=None, reason=Reason.INFEASIBLE)


def nothing(priced: SolverProblem, limits: SolveLimits) -> Outcome:
    """Finds no plan."""
    return Outcome(assignment=None, reason=Reason.NO_SOLUTION_FOUND, limit="iterations")


def hurried(priced: SolverProblem, limits: SolveLimits) -> Outcome:
    """Greedy's plan, cut by the clock."""
    return replace(Greedy().solve(priced, limits), reason=Reason.FEASIBLE, limit="time", detail="")


@pytest.fixture
def no_first_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """All depends on the partitioner."""
    monkeypatch.setattr(family_set, "Greedy", lambda **_: Scripted(nothing))


def whole_tables(count: int, rows: int = 10**6) -> list[Table]:
    """Tables of 64 columns that only ranks can hold, whole."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    return [make_table(f"t{i}", rows, 64, constraints=whole) for i in range(count)]


def unlike_tables(count: int) -> list[Table]:
    """The same of many widths and rows: no bound here says how well they pack."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    return [make_table(f"t{i}", 10 ** (4 + i % 3), (32, 64, 96, 160)[i % 4], constraints=whole) for i in range(count)]


@pytest.mark.usefixtures("no_first_plan")
def test_an_overfull_plan_cannot_leave() -> None:
    problem = make_problem(*whole_tables(4), cluster=make_cluster(hbm_bytes=300e6))
    assert solve(problem, Greedy()).plan is not None
    with pytest.raises(SolverDefect, match="rank 0 needs"):
        solve(problem, Scripted(all_on_rank_0))


@pytest.mark.usefixtures("no_first_plan")
def test_a_bound_above_the_plan_cannot_leave() -> None:
    with pytest.raises(SolverDefect, match="exceeds a plan"):
        solve(make_problem(*whole_tables(2)), Scripted(boastful))


@pytest.mark.usefixtures("no_first_plan")
def test_a_bound_over_the_listed_cuts_is_none_where_others_are_possible() -> None:
    """What a search proves about listed cuts says nothing of a table that can be cut otherwise."""
    result = solve(make_problem(make_table("a", dim=256), make_table("b", dim=256)), Scripted(boastful))
    assert result.plan is not None
    assert 0 < result.lower_bound_seconds <= result.plan.evaluation.objective_seconds


@pytest.mark.usefixtures("no_first_plan")
@pytest.mark.parametrize(("share", "limit"), [(1.0, "listed_cuts"), (0.5, "resolution")])
def test_a_proof_over_the_listed_cuts_is_reported_as_one_where_the_bound_over_all_is_lower(
    share: float, limit: str
) -> None:

    def proven(priced: SolverProblem, limits: SolveLimits) -> Outcome:
        found = Greedy().solve(priced, limits)
        assert found.assignment is not None
        seconds = share * lower_bound(priced).seconds if share < 1 else objective_of(priced, found.assignment)
        return replace(found, reason=Reason.OPTIMAL, limit=None, detail="", bound_seconds=seconds)

    problem = make_problem(make_table("a", dim=256), make_table("b", dim=256), make_table("c", dim=256))
    result = solve(problem, Scripted(proven), SolveLimits(time_limit_seconds=5.0, relative_gap=0.0))
    assert (result.reason, result.limit) == ("FEASIBLE", limit)
    assert ("what others could do is only bounded" in result.detail) is (limit == "listed_cuts")


def test_the_search_starts_from_what_is_known() -> None:
    """A first plan, what the relaxation says, and its bound; of the limits, what is left."""
    scripted = Scripted(nothing)
    problem = make_problem(*unlike_tables(9))
    result = solve(problem, scripted, SolveLimits(time_limit_seconds=5.0, relative_gap=0.0))
    (heard,) = scripted.heard
    assert heard.options.start is not None
    assert heard.options.hint is not None
    assert heard.options.lower_bound_seconds > 0
    assert heard.limits.time_limit_seconds <= 5
    assert result.plan is not None, "the first plan stays where the search finds none"
    assert result.plan.partitioner == "greedy"
    assert heard.options.lower_bound_seconds <= result.plan.evaluation.objective_seconds
    assert result.limit == "iterations", "as the search says"


def test_a_first_plan_within_the_gap_needs_no_search() -> None:
    scripted = Scripted(nothing)
    result = solve(make_problem(*whole_tables(4)), scripted)
    assert result.reason == "OPTIMAL"
    assert scripted.heard == []


def test_a_share_of_the_work_goes_to_the_search() -> None:
    """Whatever the clock allows: work of half a second is not spent a minute long."""
    scripted = Scripted(nothing)
    limits = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.5, relative_gap=0.0)
    solve(make_problem(*unlike_tables(9)), scripted, limits)
    (heard,) = scripted.heard
    assert heard.limits.work_limit_seconds is not None
    assert 0 < heard.limits.work_limit_seconds <= 0.5


def test_the_bound_looks_at_more_boxes_where_they_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """By options and work alone: one box of a large problem may take as long as the search."""
    asked: list[int] = []

    def bounding(priced: SolverProblem, *, max_boxes: int, known_seconds: float, is_over: Callable[[], bool]) -> Bound:
        asked.append(max_boxes)
        return lower_bound(priced, max_boxes=1, known_seconds=known_seconds, is_over=is_over)

    monkeypatch.setattr(exploring, "lower_bound", bounding)
    limits = replace(LONG, work_limit_seconds=2.0)
    few, many = small_problem(), make_problem(*whole_tables(300, rows=1000))
    for problem, problem_limits in ((few, limits), (many, limits), (many, replace(limits, work_limit_seconds=8.0))):
        solve(problem, Greedy(), problem_limits)
    assert asked[0] > asked[1] >= 1
    assert asked[2] > asked[1]


@pytest.mark.usefixtures("no_first_plan")
def test_cuts_that_are_not_listed_become_shards() -> None:
    """96 + 32 of 128 columns: narrower on the left or on the right, as the search says."""
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}))
    problem = make_problem(make_table(dim=128, constraints=only))

    def unequal(priced: SolverProblem, limits: SolveLimits) -> Outcome:
        wide, narrow = (int(np.flatnonzero(priced.shape_columns == columns)[0]) for columns in (96, 32))
        assignment = Assignment(piece_shape=np.array([wide, narrow]), piece_site=np.array([3, 1]))
        return Outcome(assignment=assignment, reason=Reason.FEASIBLE, limit="iterations")

    result = solve(problem, Scripted(unequal))
    assert result.plan is not None
    (placed,) = result.plan.placement.tables
    assert [(shard.rank, shard.column_offset, shard.num_columns) for shard in placed.shards] == [
        (3, 0, 96),
        (1, 96, 32),
    ]


def test_infeasible_names_the_cluster_s_shortfall() -> None:
    """Four tables of 256 MB on four ranks of 200 MB: 224 MB and buffers short in all."""
    tables = [make_table(f"t{i}", 10**6, 64) for i in range(4)]
    result = solve(make_problem(*tables, cluster=make_cluster(hbm_bytes=200e6, ddr_bytes=0)))
    assert result.reason == "INFEASIBLE"
    (short,) = result.shortfalls
    assert (short.resource, short.scope) == ("hbm", "cluster")
    assert short.available_bytes == 800e6
    assert 1024e6 <= short.required_bytes <= 1026e6
    assert "2 ranks more, 6 in all" in short.hint  # 1,024 MB of weights over 200 MB; solved


def test_infeasible_names_the_table_that_no_rank_holds() -> None:
    only = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    cluster = make_cluster(hbm_bytes=200e6, ddr_bytes=0)
    result = solve(make_problem(make_table("big", 10**6, 64, constraints=only), cluster=cluster))
    assert result.reason == "INFEASIBLE"
    assert result.shortfalls[0].table == "big"
    assert result.shortfalls[0].required_bytes > 256e6


def test_infeasible_by_constraints_is_proved_by_the_search() -> None:
    """Two tables that fill a rank each, kept on one rank."""
    tables = [make_table(name, 10**6, 64) for name in "ab"]
    cluster = make_cluster(hbm_bytes=300e6, ddr_bytes=0)
    problem = make_problem(*tables, cluster=cluster, same_rank=(frozenset({0, 1}),))
    result = solve(problem, limits=LONG)
    assert result.reason == "INFEASIBLE"
    assert result.shortfalls[0].resource == "constraints"


def eight_tables(**wanted: object) -> list[Table]:
    """800 MB in all: 390,625 rows x 64 columns x 4 B = 100 MB each."""
    constraints = TableConstraints(**wanted)  # type: ignore[arg-type]
    return [make_table(f"t{i}", 390_625, 64, constraints=constraints) for i in range(8)]


def test_a_model_of_twice_the_accelerators_memory_is_planned_in_host_memory() -> None:
    """800 MB on four ranks of 100 MB: nobody named kernels, so that host memory is offered, and the plan says so."""
    problem = make_problem(*eight_tables(), cluster=make_cluster(hbm_bytes=100e6))
    result = solve(problem)
    assert result.plan is not None
    kernels = {table.compute_kernel for table in result.plan.placement.tables}
    assert kernels & {Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING}
    for table in result.plan.placement.tables:
        assert set(table.shards.tier.tolist()) == {table.compute_kernel.tier(Tier.HBM)}
    (note,) = [one for one in result.plan.assumptions if one.subject == "constraints.compute_kernels"]
    assert note.evidence == "note"
    assert "fused_uvm and fused_uvm_caching were considered too" in note.value
    assert {"ddr_bytes", "host_link_bytes_per_second"} <= result.plan.evaluation.hardware_numbers
    assert 0 < result.lower_bound_seconds <= result.plan.evaluation.objective_seconds


def test_tables_that_name_their_kernels_stay_where_those_keep_them() -> None:
    fused = eight_tables(compute_kernels=frozenset({Kernel.FUSED, Kernel.DENSE}))
    result = solve(make_problem(*fused, cluster=make_cluster(hbm_bytes=100e6)))
    assert result.reason == "INFEASIBLE"
    assert (result.shortfalls[0].resource, result.shortfalls[0].scope) == ("hbm", "cluster")


def test_a_model_that_fits_is_not_offered_host_memory() -> None:
    result = solve(make_problem(*eight_tables(), cluster=make_cluster(hbm_bytes=300e6)))
    assert result.plan is not None
    assert {table.compute_kernel for table in result.plan.placement.tables} <= {Kernel.FUSED, Kernel.DENSE}
    assert not [one for one in result.plan.assumptions if one.subject == "constraints.compute_kernels"]


@thorough
@pytest.mark.parametrize("ddr_bytes", [250e9, 250e6, 210e6])
def test_no_tier_of_a_plan_holds_more_than_it_has(ddr_bytes: float) -> None:
    """800 MB in 4 x 210 MB of host memory and 4 x 60 MB of the accelerators': both are nearly full."""
    result = solve(make_problem(*eight_tables(), cluster=make_cluster(hbm_bytes=60e6, ddr_bytes=ddr_bytes)))
    assert result.plan is not None
    for load in result.plan.evaluation.ranks:
        assert set(load.bytes) == {Tier.HBM, Tier.DDR}
        for tier, held in load.bytes.items():
            assert held <= load.capacity_bytes[tier]
            assert held == pytest.approx(sum(load.ledger_bytes[tier].values()))
    in_ddr = sum(load.bytes[Tier.DDR] for load in result.plan.evaluation.ranks)
    assert in_ddr >= 800e6 - 4 * 60e6


def test_host_memory_that_is_too_small_as_well_is_named() -> None:
    """Of 800 MB and buffers, 4 x 60 MB go to the accelerators; the others are more than 4 x 100 MB."""
    result = solve(make_problem(*eight_tables(), cluster=make_cluster(hbm_bytes=60e6, ddr_bytes=100e6)))
    assert result.reason == "INFEASIBLE"
    (short,) = result.shortfalls
    assert (short.resource, short.scope) == ("ddr", "cluster")
    assert short.available_bytes == 400e6
    assert 560e6 <= short.required_bytes <= 562e6


def test_of_listed_data_types_the_one_that_fits_is_taken() -> None:
    """800 MB in fp32 and 400 MB in fp16, on 4 x 115 MB with nothing but fused."""
    wanted = {"compute_kernels": frozenset({Kernel.FUSED})}
    cluster = make_cluster(hbm_bytes=115e6)
    assert solve(make_problem(*eight_tables(**wanted), cluster=cluster)).plan is None
    result = solve(make_problem(*eight_tables(**wanted, data_types=("fp16", "fp32")), cluster=cluster))
    assert result.plan is not None
    types = [table.data_type for table in result.plan.placement.tables]
    assert types.count("fp16") >= 7
    only = solve(make_problem(*eight_tables(**wanted, data_types=("fp16",)), cluster=cluster))
    assert only.plan is not None
    assert {table.data_type for table in only.plan.placement.tables} == {"fp16"}
    assert sum(load.bytes[Tier.HBM] for load in only.plan.evaluation.ranks) < 410e6


def test_types_that_cannot_be_trained_are_not_chosen() -> None:
    """int8 would fit everywhere, and no kernel trains it."""
    result = solve(make_problem(*eight_tables(data_types=("int8", "fp32")), cluster=make_cluster()))
    assert result.plan is not None
    assert {table.data_type for table in result.plan.placement.tables} == {"fp32"}


def test_a_table_without_options_is_named() -> None:
    result = solve(make_problem(make_table("odd", dim=10)))
    assert result.reason == "INFEASIBLE"
    assert "pad embedding_dim to 12" in result.shortfalls[0].message


def test_mean_tables_too_large_for_a_rank_make_the_module_row_wise() -> None:
    """64-column MEAN tables cannot be cut below 32 columns; only rows fit, so all tables go by rows."""
    tables = [make_table("m", 10**6, 64, pooling="mean"), make_table("s", 1000, 64)]
    result = solve(make_problem(*tables, cluster=make_cluster(hbm_bytes=100e6)))
    assert result.plan is not None
    assert {placed.sharding_type for placed in result.plan.placement.tables} <= {Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE}


def test_mean_tables_that_fit_stay_free() -> None:
    tables = [make_table("m", 1000, 64, pooling="mean", pooling_factor=1.0), make_table("s", 1000, 64)]
    result = solve(make_problem(*tables))
    assert result.plan is not None


def test_verified_plans_are_streamed_and_improve() -> None:
    reported: list[PlanResult] = []
    result = plan(
        small_problem(), cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS, on_result=reported.append
    )
    values = [one.plan.evaluation.objective_seconds for one in reported if one.plan is not None]
    assert values == sorted(values, reverse=True)
    assert len(values) == len(reported) > 0
    assert result.plan is not None
    assert result.plan.evaluation.objective_seconds <= values[-1]


def test_a_better_bound_is_reported_with_the_plan_that_is_known() -> None:
    reported: list[PlanResult] = []
    plan(small_problem(), cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS, on_result=reported.append)
    plans = [one.plan for one in reported if one.plan is not None]
    bounds = [one.lower_bound_seconds for one in plans]
    assert bounds == sorted(bounds)
    assert plans[0].placement == plans[1].placement
    assert bounds[0] < bounds[1]
    for one in plans:
        assert one.relative_gap == pytest.approx(one.evaluation.objective_seconds / one.lower_bound_seconds - 1)


def test_more_memory_never_hurts() -> None:
    best = []
    for hbm in (0.9e6, 1.5e6, 80e9):
        result = solve(
            make_problem(*[make_table(f"t{i}", 3000, 64) for i in range(4)], cluster=make_cluster(hbm_bytes=hbm))
        )
        assert result.plan is not None
        best.append(result.plan.evaluation.objective_seconds)
    assert best[0] >= best[1] * (1 - 0.006)
    assert best[1] >= best[2] * (1 - 0.006)


def test_unequal_ranks_are_respected() -> None:
    cluster = replace(make_cluster(), hbm_bytes_by_rank=(80e9, 1e6, 1e6, 80e9))
    tables = [
        make_table(f"t{i}", 10**5, 64, constraints=TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE})))
        for i in range(4)
    ]
    result = solve(make_problem(*tables, cluster=cluster))
    assert result.plan is not None
    ranks = {shard.rank for placed in result.plan.placement.tables for shard in placed.shards}
    assert ranks <= {0, 3}
    assert np.all([load.bytes[0] <= load.capacity_bytes[0] for load in result.plan.evaluation.ranks])


def test_a_module_that_can_be_neither_free_nor_by_rows_is_infeasible() -> None:
    rows_only = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    result = solve(make_problem(make_table("m", pooling="mean", constraints=rows_only), make_table("tiny", rows=3)))
    assert result.reason == "INFEASIBLE"
    assert "MEAN-pooled" in result.shortfalls[0].message


@pytest.mark.parametrize(("num_modules", "reason"), [(3, "INFEASIBLE"), (4, "NO_SOLUTION_FOUND")])
@pytest.mark.usefixtures("no_first_plan")
def test_what_was_not_tried_is_not_called_infeasible(num_modules: int, reason: str) -> None:
    """Four undecided modules switch together, so that failing in both states proves nothing."""
    schemes = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE}))
    tables = [
        make_table(f"m{i}", pooling="mean", module_path=f"module{i}", constraints=schemes) for i in range(num_modules)
    ]
    assert solve(make_problem(*tables), Scripted(hopeless)).reason == reason


@pytest.mark.usefixtures("no_first_plan")
def test_unlisted_column_widths_are_not_called_infeasible() -> None:
    """Columns of any width could be cut; that the listed cuts fail proves nothing."""
    result = solve(make_problem(make_table("a", dim=256), make_table("b", dim=256)), Scripted(hopeless))
    assert result.reason == "NO_SOLUTION_FOUND"
    assert result.limit == "listed_cuts"
    assert "other column widths" in result.detail


def test_a_kernel_that_the_optimizer_rules_out_is_a_proof_and_reported_once_for_all_schemes() -> None:
    """No other cut would help, so that nobody need try again."""
    stored = TableConstraints(compute_kernels=frozenset({Kernel.KEY_VALUE}))
    result = solve(make_problem(make_table("a", dim=256, optimizer="adam", constraints=stored)))
    assert (result.reason, result.limit) == ("INFEASIBLE", None)
    message = result.shortfalls[0].message
    assert "table_wise, row_wise, table_row_wise: key_value does not run with optimizer adam" in message
    assert message.count("optimizer") == 1
    assert "data_parallel: it runs with dense, none of them among the allowed compute_kernels" in message


@pytest.mark.usefixtures("no_first_plan")
def test_short_last_blocks_are_not_called_infeasible() -> None:
    """Three rows on two ranks: two full blocks are priced, a row more than there is."""
    rows = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    problem = make_problem(make_table("a", rows=3, constraints=rows), cluster=make_cluster(1, 2))
    assert solve(problem, Scripted(hopeless)).reason == "NO_SOLUTION_FOUND"
    full = make_problem(make_table("a", rows=4, constraints=rows), cluster=make_cluster(1, 2))
    assert solve(full, Scripted(hopeless)).reason == "INFEASIBLE"


def test_tables_that_fit_nowhere_are_cut_narrower() -> None:
    """256 MB of 64 columns on ranks of 100 MB: only pieces narrower than the usual 32 columns fit."""
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}))
    table = make_table("narrow", 10**6, 64, constraints=only)
    cluster = make_cluster(hbm_bytes=100e6, ddr_bytes=0)
    result = solve(make_problem(table, cluster=cluster))
    assert result.plan is not None
    assert len(result.plan.placement.tables[0].shards) >= 3
    asked = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}), min_partition=32)
    held = solve(make_problem(replace(table, constraints=asked), cluster=cluster))
    assert held.plan is None
    assert held.shortfalls[0].required_bytes > 100e6


def test_row_blocks_are_short_on_the_smallest_rank() -> None:
    """row_wise needs the same of every rank: what is short is measured on the smallest one."""
    rows = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    cluster = replace(make_cluster(ddr_bytes=0), hbm_bytes_by_rank=(80e9, 80e9, 80e9, 1e6))
    result = solve(make_problem(make_table("t", 10**6, 64, constraints=rows), cluster=cluster))
    (short,) = result.shortfalls
    assert result.reason == "INFEASIBLE"
    assert short.available_bytes == 1e6
    assert 64e6 <= short.required_bytes <= 65e6


def test_a_proof_counts_as_optimal_at_gap_zero() -> None:
    problem = make_problem(make_table("a"), make_table("b"), cluster=make_cluster(1, 2))
    result = solve(problem, limits=SolveLimits(time_limit_seconds=5.0, relative_gap=0.0))
    assert result.reason == "OPTIMAL"
    assert result.plan is not None
    assert result.plan.relative_gap == pytest.approx(0, abs=1e-6)


@pytest.mark.usefixtures("no_first_plan")
def test_a_clock_that_cut_the_search_is_named_even_when_the_plan_is_good() -> None:
    result = solve(small_problem(), Scripted(hurried), limits=SolveLimits(relative_gap=1.0))
    assert result.reason == "OPTIMAL"
    assert result.limit == "time"


def test_columns_that_no_width_could_help_are_proven() -> None:
    """table_column_wise on hosts of one rank: there is no second rank to cut to."""
    only = TableConstraints(sharding_types=frozenset({Scheme.TABLE_COLUMN_WISE}))
    problem = make_problem(make_table(constraints=only), cluster=make_cluster(2, 1))
    assert solve(problem, limits=LONG).reason == "INFEASIBLE"


def nothing_found(limit: str = "deterministic_time") -> Outcome:
    return Outcome(assignment=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit)


@thorough
def test_a_search_with_host_memory_has_time_of_its_own() -> None:
    """Three tables of 0.6 of a rank fit two ranks together and not one by one; the first search takes all the time."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    tables = [make_table(f"t{i}", 100_000, 64, constraints=whole) for i in range(3)]
    problem = make_problem(*tables, cluster=make_cluster(1, 2, hbm_bytes=25.6e6 / 0.6))

    def slow(priced: SolverProblem, limits: SolveLimits) -> Outcome:
        time.sleep(2.1)
        return nothing_found()

    partitioner = Scripted(slow)
    result = solve(problem, partitioner, SolveLimits(time_limit_seconds=2.0))
    assert result.plan is not None  # the first one, of host memory
    assert len(partitioner.heard) == 2
    assert 0.1 < partitioner.heard[1].limits.time_limit_seconds <= 0.5
    assert {placed.compute_kernel for placed in result.plan.placement.tables} & {
        Kernel.FUSED_UVM,
        Kernel.FUSED_UVM_CACHING,
    }


def test_what_the_clock_may_have_cut_says_so() -> None:
    def slow(priced: SolverProblem, limits: SolveLimits) -> Outcome:
        time.sleep(0.5)
        return nothing_found()

    late = solve(small_problem(), Scripted(slow), SolveLimits(time_limit_seconds=0.4, relative_gap=0.0))
    soon = solve(small_problem(), Scripted(lambda *_: nothing_found()), SolveLimits(time_limit_seconds=60))
    assert (late.limit, soon.limit) == ("time", "deterministic_time")


@pytest.mark.parametrize(("share", "reason", "limit"), [(0.5, "FEASIBLE", "tier_bandwidth"), (1.0, "OPTIMAL", None)])
def test_a_plan_of_a_part_is_rated_by_the_bound_of_all(share: float, reason: str, limit: str | None) -> None:
    result = solve(small_problem(), limits=SolveLimits(time_limit_seconds=2.0, relative_gap=0.3))
    assert result.plan is not None
    seconds = result.plan.evaluation.objective_seconds
    rated = within_bound(result.plan, share * seconds, 0.3)
    assert (rated.reason, rated.limit) == (reason, limit)
    assert rated.lower_bound_seconds == pytest.approx(share * seconds)
    assert rated.relative_gap == pytest.approx(1 / share - 1)
