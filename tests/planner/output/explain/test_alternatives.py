"""What else a table could be: legal, rightly priced, and the best there is."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Scheme
from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.orchestration.placement.listed_plan import ListedPlan, find_plan
from planner.output.explain.alternatives import Alternative, Alternatives
from planner.pipeline import plan
from planner.solver.evaluate import objective_of, rank_loads, violations
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Assignment
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exhaustive import placements

LIMITS = SolveLimits(time_limit_seconds=5.0)


def solved(problem: Problem) -> Plan:
    found = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS).plan
    assert found is not None
    return found


def listed(problem: Problem) -> ListedPlan:
    return find_plan(problem, solved(problem).placement, ROOFLINE)


def three_tables(**changes: object) -> Problem:
    tables = [make_table(f"t{i}", 40_000 * (i + 1), 64, pooling_factor=5.0 * (3 - i)) for i in range(3)]
    return make_problem(*tables, cluster=make_cluster(2, 2), **changes)


def brute(plan: ListedPlan, table: int) -> float:
    """The least objective over all listed cuts of one table that are not its own, on all sites that are legal."""
    priced, assignment = plan.priced, plan.assignment
    owner = priced.shape_table[assignment.piece_shape]
    mine = np.sort(assignment.piece_shape[owner == table])
    prices = (priced.shape_columns, priced.shape_seconds, priced.shape_bytes, priced.shape_scope)
    best = np.inf
    for pieces in placements(priced, table, listed=True):
        shapes = np.array([piece[0] for piece in pieces])
        in_order = np.sort(shapes)
        if len(in_order) == len(mine) and all(np.array_equal(of[in_order], of[mine]) for of in prices):
            continue
        before, after = owner < table, owner > table
        sites = np.array([piece[1] for piece in pieces])
        changed = Assignment(
            piece_shape=np.concatenate([assignment.piece_shape[before], shapes, assignment.piece_shape[after]]),
            piece_site=np.concatenate([assignment.piece_site[before], sites, assignment.piece_site[after]]),
        )
        if not violations(priced, changed):
            best = min(best, objective_of(priced, changed))
    return best


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
@pytest.mark.parametrize("room", [1.2, 4.0])
@pytest.mark.parametrize("latency", [0.0, 20e-6])
def test_the_next_best_is_the_best_of_all_listed_cuts(objective: str, room: float, latency: float) -> None:
    """Starts of sharding types that a cut would open or close are in what it costs."""
    problem = three_tables(objective=objective)
    total = sum(table.weight_bytes for table in problem.tables)
    latencies = {"intra_host_latency_seconds": latency, "inter_host_latency_seconds": 2 * latency}
    cluster = make_cluster(2, 2, hbm_bytes=room * total / 4 + 4e6, **latencies)
    plan = listed(replace(problem, cluster=cluster))
    found = Alternatives(plan)
    for table in range(3):
        reported = found.of_table(table)
        fitting = [one for one in reported if one.excess_bytes == 0]
        assert list(reported) == sorted(reported, key=lambda one: (one.excess_bytes, one.change_seconds))
        best = brute(plan, table)
        assert min((one.objective_seconds for one in fitting), default=np.inf) == pytest.approx(best)
        for one in reported:
            assert (one.opened_seconds > 0 or one.num_kinds > 0) is (latency > 0)
            assert one.change_seconds == one.objective_seconds - found.objective_seconds
            assert one.objective_seconds == objective_of(plan.priced, one.assignment)
            assert bool(violations(plan.priced, one.assignment)) == (one.excess_bytes > 0)
            excess = np.max(rank_loads(plan.priced, one.assignment).bytes - plan.priced.capacity_bytes)
            assert one.excess_bytes == pytest.approx(max(excess, 0.0))


def of_scheme(reported: tuple[Alternative, ...], scheme: Scheme) -> Alternative:
    (one,) = [one for one in reported if one.scheme is scheme]
    return one


def test_the_phase_that_lengthens_most_is_named() -> None:
    plan = listed(make_problem(make_table("a", 4_000_000, 128, pooling_factor=50.0), cluster=make_cluster(1, 4)))
    found = Alternatives(plan)
    whole = of_scheme(found.of_table(0), Scheme.TABLE_WISE)
    assert whole.phase is not None
    longer = np.max(rank_loads(plan.priced, whole.assignment).seconds, axis=0) - np.max(found.seconds, axis=0)
    assert whole.phase == np.argmax(longer * plan.priced.phase_weight)
    assert whole.phase_seconds[1] - whole.phase_seconds[0] == pytest.approx(longer.max())


def test_the_same_cut_under_another_name_is_no_alternative() -> None:
    """On one host rows over the host are rows over all ranks, and column pieces on one host are column pieces."""
    only = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE}))
    plan = listed(make_problem(make_table("a", constraints=only)))
    assert Alternatives(plan).of_table(0) == ()


def test_joint_constraints_hold_for_alternatives() -> None:
    problem = three_tables(same_rank=(frozenset({0, 1}),), apart=(frozenset({1, 2}),))
    plan = listed(problem)
    found = Alternatives(plan)
    reported = [one for table in range(3) for one in found.of_table(table)]
    assert reported
    assert all(not violations(plan.priced, one.assignment) for one in reported)


def test_rows_of_means_are_offered_only_in_company() -> None:
    """A pool of means may be cut by rows where its whole module is, and leaves the module whole where others are."""
    schemes = frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE})
    free = TableConstraints(sharding_types=schemes)
    mean = make_table("mean", 4000, pooling="mean", module_path="m", constraints=free)
    for partner, expected in ((Scheme.TABLE_WISE, set()), (Scheme.ROW_WISE, {Scheme.TABLE_WISE, Scheme.ROW_WISE})):
        only = TableConstraints(sharding_types=frozenset({partner}))
        sums = make_table("sums", 4000, module_path="m", constraints=only)
        plan = listed(make_problem(mean, sums))
        family = plan.families.families[int(plan.priced.shape_family[plan.assignment.piece_shape[0]])]
        assert {one.scheme for one in Alternatives(plan).of_table(0)} == expected - {family.scheme}


def test_a_sum_keeps_to_rows_where_a_mean_of_its_module_is_cut_by_rows() -> None:
    rows = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    free = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE}))
    mean = make_table("mean", 4000, pooling="mean", module_path="m", constraints=rows)
    sums = make_table("sums", 4000, module_path="m", constraints=free)
    elsewhere = make_table("elsewhere", 4000, module_path="n", constraints=free)
    found = Alternatives(listed(make_problem(mean, sums, elsewhere)))
    assert found.of_table(1) == ()
    assert found.of_table(2)
