"""Short solves: what counts as a plan, and when they end."""

import contextlib
from dataclasses import replace

import pytest

from planner.diagnosis import trial_solves as attempts_module
from planner.diagnosis.trial_solves import COUNTED, MOST_SECONDS, SHARE, Attempts, OutOfWork, attempt_limits
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.orchestration.placement.to_placement import to_placement
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import Assignment, SolverProblem
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

#: Counted work ends the attempts; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=1.0)


def attempts(limits: SolveLimits = LIMITS) -> Attempts:
    return Attempts(ROOFLINE, limits)


def full_problem() -> Problem:
    """A table of 256 MB on ranks of 100 MB: a little more than half of the cluster."""
    return make_problem(make_table("a", 10**6, 64), cluster=make_cluster(hbm_bytes=100e6))


def test_a_plan_is_verified_and_its_fill_is_reported() -> None:
    found = attempts().solve(full_problem())
    assert found.placement is not None
    assert found.plan is not None
    assert verify(full_problem(), found.placement) == ()
    assert found.plan.capacity_bytes == 400e6
    assert 256e6 <= found.plan.used_bytes <= 260e6
    assert 0.64 <= found.plan.fullest_rank_fraction <= 1.0


def test_a_placement_that_the_checks_reject_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(problem: Problem, families: Families, priced: SolverProblem, assignment: Assignment) -> Placement:
        placement = to_placement(problem, families, priced, assignment)
        table = placement.tables[0]
        return replace(placement, tables=(replace(table, shards=table.shards[1:]),))

    monkeypatch.setattr(attempts_module, "to_placement", half)
    halving = Attempts(ROOFLINE, LIMITS)
    found = halving.solve(full_problem())
    assert found.plan is None
    assert not found.is_infeasible


def test_a_proof_is_distinguished_from_a_search_without_luck() -> None:
    assert attempts().solve(make_problem(make_table("odd", dim=10))).is_infeasible
    together = replace(full_problem(), tables=(make_table("a", 10**6, 64), make_table("b")))
    unlucky = attempts().solve(replace(together, same_rank=(frozenset({0, 1}),)))
    assert unlucky.plan is None


def test_a_number_that_the_hardware_lacks_is_no_plan() -> None:
    cluster = make_cluster(2, 2)
    numbers = {name: one for name, one in cluster.hardware.numbers.items() if name != "inter_host_bytes_per_second"}
    lacking = replace(cluster, hardware=replace(cluster.hardware, numbers=numbers))
    assert attempts().solve(make_problem(cluster=lacking)).plan is None


def test_the_limit_ends_them_after_the_same_number_of_solves() -> None:
    counts = []
    for _ in range(2):
        bounded = attempts(replace(LIMITS, work_limit_seconds=0.05))
        with contextlib.suppress(OutOfWork):
            for _ in range(100):
                bounded.solve(full_problem())
        counts.append(bounded.num_solves)
        assert bounded.limit == "deterministic_time"
    assert counts[0] == counts[1] < 20


def test_a_share_is_preserved_for_later() -> None:
    bounded = attempts(replace(LIMITS, work_limit_seconds=0.05))
    bounded.allow(0.0)
    with pytest.raises(OutOfWork):
        bounded.solve(full_problem())
    bounded.allow(1.0)
    assert bounded.solve(full_problem()).plan is not None


@pytest.mark.parametrize(
    ("limit_seconds", "num_tables", "most_seconds"),
    [(1.0, 10, SHARE), (100.0, 10, MOST_SECONDS), (100.0, 5000, 20.0), (10.0, 5000, 2.0)],
)
def test_they_take_a_share_of_the_limit_at_most(limit_seconds: float, num_tables: int, most_seconds: float) -> None:
    limits = SolveLimits(time_limit_seconds=limit_seconds, seed=7, reproducible=False)
    by_clock = attempt_limits(limits, num_tables)
    assert by_clock.time_limit_seconds == pytest.approx(most_seconds)
    counted = attempt_limits(replace(limits, reproducible=True), num_tables)
    assert counted.work_limit_seconds == pytest.approx(most_seconds * COUNTED)
    assert counted.time_limit_seconds == pytest.approx(limit_seconds * SHARE)  # work ends it before the clock does
    assert by_clock.seed == counted.seed == 7
