"""Advice on problems that no single change solves; advice that is followed leads to a plan, and not away from it.

Hosts have no memory for tables: what does not fit into the accelerators' fits nowhere.
"""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.diagnosis.hints import with_solved_hints
from planner.diagnosis.trial_solves import Attempts
from planner.domain.plan.diagnosis import Diagnosis, Fix
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.output.explain.text.infeasible import explain_no_plan
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.kernels.warm_up import warm
from tests.support.planning.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table

#: Counted work ends all; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=10.0)
WHOLE = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile ahead: the clock of the first diagnosis would end it."""
    warm()


def solved(problem: Problem) -> PlanResult:
    return plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS)


def fixes_of(result: PlanResult) -> tuple[Fix, ...]:
    assert result.plan is None
    assert result.diagnosis is not None
    return result.diagnosis.fixes


def whole_table_on(num_bytes: float, **changes: object) -> Problem:
    """A table of 256 MB that must stay whole, on four ranks."""
    cluster = make_cluster(1, 4, hbm_bytes=num_bytes, ddr_bytes=0)
    return make_problem(make_table("a", 10**6, 64, constraints=WHOLE), cluster=cluster, **changes)


def test_a_constraint_and_hosts_together() -> None:
    """The table fits no rank, and all four together are short by a sixth: two hosts hold it cut by rows."""
    result = solved(whole_table_on(56e6))
    assert any(short.scope == "cluster" for short in result.shortfalls)
    (fix,) = [fix for fix in fixes_of(result) if fix.kind == "combined" and "host" in fix.message]
    assert fix.message == '1 host more, 2 in all, at the same batch per rank; and allow row_wise for table "a"'
    assert [(change.pointer, change.value) for change in fix.changes] == [
        ("/hardware/num_hosts", 2),
        ("/model/tables/0/constraints/sharding_types", ("table_wise", "row_wise")),
    ]
    fixed = whole_table_on(56e6)
    wider = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE}))
    fixed = replace(
        fixed,
        cluster=replace(fixed.cluster, num_hosts=2),
        tables=(replace(fixed.tables[0], constraints=wider),),
    )
    assert solved(fixed).plan is not None


def test_a_constraint_and_a_little_memory_before_much_memory_alone() -> None:
    memory = [fix for fix in fixes_of(solved(whole_table_on(56e6))) if "more hbm" in fix.message]
    assert [fix.kind for fix in memory] == ["combined", "memory"]
    little, much = (fix.changes[0].value for fix in memory)
    assert isinstance(little, int)
    assert isinstance(much, int)
    assert little < 80e6 < 256e6 < much


def test_a_constraint_on_kernels_and_hosts_together() -> None:
    """Host memory is there, and not allowed; with it two hosts hold what one does not."""
    kernels = TableConstraints(compute_kernels=frozenset({Kernel.FUSED}), sharding_types=WHOLE.sharding_types)
    tables = [make_table(f"t{i}", 10**6, 64, constraints=kernels) for i in range(6)]
    problem = make_problem(*tables, cluster=make_cluster(1, 4, hbm_bytes=40e6, ddr_bytes=300e6))
    combined = [fix for fix in fixes_of(solved(problem)) if fix.kind == "combined"]
    hosts = [fix for fix in combined if fix.changes[0].pointer == "/hardware/num_hosts"]
    assert hosts
    assert any(change.pointer.endswith("/compute_kernels") for change in hosts[0].changes[1:])


def test_no_combination_where_a_constraint_alone_gives_a_plan() -> None:
    """Four ranks hold the table by rows: no other hardware is asked for."""
    kinds = {fix.kind for fix in fixes_of(solved(whole_table_on(90e6)))}
    assert "constraint" in kinds
    assert "combined" not in kinds


def test_no_fix_contains_another() -> None:
    for num_bytes in (40e6, 56e6, 70e6):
        changes = [set(fix.changes) for fix in fixes_of(solved(whole_table_on(num_bytes)))]
        assert not any(one < other for one in changes for other in changes)


def row_wise_buffers(num_hosts: int) -> Problem:
    """Tables cut by rows, whose buffers of inputs and outputs grow with the ranks: on each they need as much again."""
    by_rows = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    tables = [make_table(f"t{i}", 10_000, 64, pooling_factor=4.0, constraints=by_rows) for i in range(6)]
    cluster = make_cluster(num_hosts, 4, hbm_bytes=50e6, ddr_bytes=0)
    return make_problem(*tables, cluster=cluster, batch_size_per_rank=16_384)


def test_advice_does_not_move_away_as_it_is_followed() -> None:
    """No number of ranks is advised where buffers grow with them; and what is advised was solved."""
    for num_hosts in (1, 2, 4):
        result = solved(row_wise_buffers(num_hosts))
        fixes = fixes_of(result)
        (short,) = result.shortfalls
        assert short.scope == "cluster"
        assert "ranks" not in short.hint.replace("on every rank", "")
        assert "ranks" not in {fix.kind for fix in fixes}
        assert short.hint == "; or ".join(fix.message for fix in fixes[:3])
        text = explain_no_plan(result, name="m")
        assert "way out" not in text  # the fixes say it
        assert all(fix.message.split(";")[0][:40] in text for fix in fixes)


def test_where_nothing_helps_no_way_out_is_promised() -> None:
    nothing = Diagnosis(conflict=None, has_plan_without_constraints=False, fixes=(), num_solves=9, limit=None)
    (short,) = solved(whole_table_on(90e6)).shortfalls
    (changed,) = with_solved_hints((short,), nothing)
    assert changed.hint.startswith("none of the changes tried gives a plan")
    reasons = replace(short, resource="options", hint="change its shape as the reasons say")
    assert with_solved_hints((reasons,), nothing) == (reasons,)


def test_a_plan_that_a_tier_cannot_serve_is_no_fix() -> None:
    """TorchRec's prices hide what caches miss: the tables fit with less reserved, and the link stays too slow."""
    cached = TableConstraints(
        sharding_types=WHOLE.sharding_types,
        compute_kernels=frozenset({Kernel.FUSED_UVM_CACHING}),
        cache_load_factors=(0.1,),
    )
    tables = [make_table(f"t{i}", 100_000, 64, pooling_factor=32.0, constraints=cached) for i in range(4)]
    cluster = make_cluster(1, 2, hbm_bytes=35e6, ddr_bytes_per_second=1e7)
    problem = make_problem(*tables, cluster=cluster, pipeline="train_prefetch_sparse_dist")
    attempts = Attempts(TORCHREC, LIMITS)
    assert attempts.solve(problem).plan is None
    faster = replace(
        cluster,
        hardware=cluster.hardware.with_overrides(
            {"ddr_bytes_per_second": 1e14}, {"ddr_bytes_per_second": "bytes_per_second"}
        ),
    )
    assert attempts.solve(replace(problem, cluster=faster)).plan is not None
