"""Which constraints are to blame and what would help, on problems that were made to fail in one way.

Hosts have no memory for tables: what does not fit into the accelerators' fits nowhere.
"""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner import pipeline
from planner.diagnosis import trial_solves
from planner.diagnosis.constraints import constraints_of, with_only
from planner.diagnosis.diagnose import diagnose
from planner.diagnosis.trial_solves import Attempts
from planner.domain.plan.diagnosis import Diagnosis, Fix
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem, Reservation
from planner.domain.problem.table import PinnedPiece, PinnedTable, Table, TableConstraints
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.kernels.warm_up import warm
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.thorough import thorough

#: Counted work ends all; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=10.0)
WHOLE = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
ROOM: dict[str, object] = {"cluster": make_cluster(1, 8, hbm_bytes=1.15e9, ddr_bytes=0)}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile ahead: the clock of the first diagnosis would end it."""
    warm()


def diagnosed(problem: Problem) -> Diagnosis:
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS)
    assert result.plan is None
    assert result.diagnosis is not None
    return result.diagnosis


def blamed(diagnosis: Diagnosis) -> list[str]:
    assert diagnosis.conflict is not None
    return [constraint.pointer for constraint in diagnosis.conflict.constraints]


def fixes_of(diagnosis: Diagnosis, kind: str) -> list[Fix]:
    return [fix for fix in diagnosis.fixes if fix.kind == kind]


def large(name: str = "a", constraints: TableConstraints | None = None, **changes: str) -> Table:
    """A table of 256 MB."""
    return make_table(name, 10**6, 64, constraints=constraints, **changes)  # type: ignore[arg-type]


def ranks_of(num_bytes: float, num_hosts: int = 1) -> dict[str, object]:
    return {"cluster": make_cluster(num_hosts, 4, hbm_bytes=num_bytes, ddr_bytes=0)}


def test_a_scheme_that_fits_nowhere_is_widened_to_one_that_does() -> None:
    found = diagnosed(make_problem(large(constraints=WHOLE), make_table("b"), **ranks_of(200e6)))
    assert blamed(found) == ["/model/tables/0/constraints/sharding_types"]
    assert found.conflict is not None
    assert found.conflict.is_proven
    (fix,) = fixes_of(found, "constraint")
    assert fix.changes[0].value == ("table_wise", "row_wise")
    assert fix.message == 'allow row_wise for table "a"'


def test_a_width_and_a_scheme_are_in_conflict_only_together() -> None:
    columns = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}), min_partition=32)
    found = diagnosed(make_problem(large(constraints=columns), **ranks_of(100e6)))
    path = "/model/tables/0/constraints/"
    assert sorted(blamed(found)) == [f"{path}min_partition", f"{path}sharding_types"]
    width = next(fix for fix in found.fixes if fix.changes[0].pointer == f"{path}min_partition")
    assert isinstance(width.changes[0].value, int)
    assert 4 <= width.changes[0].value < 32


def test_a_kernel_that_runs_nothing_that_is_allowed_is_widened() -> None:
    dense = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}), compute_kernels=frozenset({Kernel.DENSE}))
    found = diagnosed(make_problem(make_table("a", constraints=dense)))
    assert len(blamed(found)) == 2
    values = [fix.changes[0].value for fix in fixes_of(found, "constraint")]
    assert ("dense", "fused") in [tuple(sorted(value)) for value in values if isinstance(value, tuple)]


@thorough
@pytest.mark.parametrize("field", ["ranks", "hosts"])
def test_ranks_and_hosts_that_are_too_few_are_widened(field: str) -> None:
    only = TableConstraints(ranks=frozenset({0})) if field == "ranks" else TableConstraints(hosts=frozenset({0}))
    tables = [large(name, only) for name in "abc"]
    room = 600e6 if field == "ranks" else 150e6
    found = diagnosed(make_problem(*tables, **ranks_of(room, 2)))
    assert blamed(found) == [f"/model/tables/{index}/constraints/{field}" for index in range(3)]
    fixes = fixes_of(found, "constraint")
    assert fixes
    for fix in fixes:
        (change,) = fix.changes
        assert isinstance(change.value, tuple)
        assert set(change.value) > {0}


@thorough
@pytest.mark.parametrize(("field", "room"), [("same_rank", 300e6), ("apart", 80e9)])
def test_groups_are_left_out(field: str, room: float) -> None:
    count = 2 if field == "same_rank" else 5
    tables = [large(f"t{index}") for index in range(count)]
    problem = make_problem(*tables, **ranks_of(room), **{field: (frozenset(range(count)),)})
    found = diagnosed(problem)
    assert blamed(found) == [f"/constraints/{field}/0"]
    (fix,) = fixes_of(found, "constraint")
    assert [(change.pointer, change.value) for change in fix.changes] == [(f"/constraints/{field}/0", None)]


def test_a_pin_is_left_out() -> None:
    piece = PinnedPiece(column_offset=0, num_columns=64, site=1)
    pin = PinnedTable(sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, pieces=(piece,))
    found = diagnosed(make_problem(large(constraints=TableConstraints(pinned=pin)), **ranks_of(200e6)))
    assert blamed(found) == ["/model/tables/0/constraints/pinned"]
    assert fixes_of(found, "constraint")[0].changes[0].value is None


def test_several_conflicts_are_left_out_together_from_the_end() -> None:
    found = diagnosed(make_problem(large("a", WHOLE), make_table("b"), large("c", WHOLE), **ranks_of(200e6)))
    assert len(blamed(found)) == 1
    (fix,) = fixes_of(found, "constraint")
    assert [change.pointer for change in fix.changes] == [
        "/model/tables/2/constraints/sharding_types",
        "/model/tables/0/constraints/sharding_types",
    ]


def test_less_is_reserved_in_hundredths() -> None:
    reserved = Reservation(hbm_fraction=0.15, dense_multiplier=0.0, input_copies=0)
    found = diagnosed(make_problem(*[large(f"t{i}") for i in range(4)], **ranks_of(280e6), reservation=reserved))
    assert blamed(found) == ["/constraints/reserved_hbm_fraction"]
    assert not fixes_of(found, "constraint")
    (fix,) = fixes_of(found, "reservation")
    assert fix.changes[0].value == 0.08  # 256 MB and a little of 280 MB are left at 0.08, not at 0.09
    assert fix.plan.fullest_rank_fraction <= 1


def test_memory_is_the_least_that_was_found() -> None:
    """Four whole tables of 256 MB on four ranks need 256 MB and their buffers each."""
    found = diagnosed(make_problem(*[large(f"t{i}", WHOLE) for i in range(4)], **ranks_of(200e6)))
    (fix,) = fixes_of(found, "memory")
    (change,) = fix.changes
    assert change.pointer == "/hardware/overrides/hbm_bytes"
    assert isinstance(change.value, int)
    assert 256e6 < change.value < 256e6 * 1.02


def test_unequal_ranks_all_get_the_same_more() -> None:
    cluster = replace(make_cluster(ddr_bytes=0), hbm_bytes_by_rank=(200e6, 100e6, 100e6, 100e6))
    found = diagnosed(make_problem(large(constraints=WHOLE), cluster=cluster))
    (change,) = fixes_of(found, "memory")[0].changes
    assert change.pointer == "/hardware/overrides/hbm_bytes_by_rank"
    assert isinstance(change.value, tuple)
    assert change.value[0] - 200e6 == change.value[1] - 100e6 == change.value[3] - 100e6
    assert 56e6 < change.value[0] - 200e6 < 64e6


def test_ranks_of_the_host_and_further_hosts() -> None:
    found = diagnosed(make_problem(*[large(f"t{i}") for i in range(4)], **ranks_of(230e6)))
    ranks, hosts = fixes_of(found, "ranks")
    assert [(change.pointer, change.value) for change in ranks.changes] == [("/hardware/ranks_per_host", 5)]
    assert [(change.pointer, change.value) for change in hosts.changes] == [("/hardware/num_hosts", 2)]
    assert found.conflict is None
    assert found.has_plan_without_constraints is False


def test_hosts_of_unequal_ranks_are_like_the_last_one() -> None:
    cluster = replace(
        make_cluster(2, 1, ddr_bytes=0), hbm_bytes_by_rank=(300e6, 200e6), relative_speed_by_rank=(1.0, 0.5)
    )
    found = diagnosed(make_problem(*[large(f"t{i}") for i in range(3)], cluster=cluster))
    (fix,) = fixes_of(found, "ranks")
    assert [(change.pointer, change.value) for change in fix.changes] == [
        ("/hardware/num_hosts", 4),
        ("/hardware/overrides/hbm_bytes_by_rank", (300e6, 200e6, 200e6, 200e6)),
        ("/hardware/overrides/relative_speed_by_rank", (1.0, 0.5, 0.5, 0.5)),
    ]


def test_a_pin_on_all_ranks_means_another_cluster_where_there_are_more() -> None:
    piece = PinnedPiece(column_offset=0, num_columns=64, site=0)
    pin = PinnedTable(sharding_type=Scheme.ROW_WISE, compute_kernel=Kernel.FUSED, pieces=(piece,))
    found = diagnosed(make_problem(large(constraints=TableConstraints(pinned=pin)), **ranks_of(50e6)))
    assert not fixes_of(found, "ranks")
    assert fixes_of(found, "memory")


def test_weights_of_a_smaller_type_for_as_few_tables_as_possible() -> None:
    """1.024 GB on 960 MB: half of one of the four tables is enough, and the largest one comes first."""
    tables = [make_table(f"t{i}", 10**6 + (i == 2), 64) for i in range(4)]
    (fix,) = fixes_of(diagnosed(make_problem(*tables, **ranks_of(240e6))), "data_type")
    assert [(change.pointer, change.value) for change in fix.changes] == [("/model/tables/2/data_type", "fp16")]
    assert fix.message == 'data_type fp16 instead of fp32 for 1 table: "t2"'


FP32 = TableConstraints(data_types=("fp32",))


def test_a_list_of_types_is_widened_for_as_few_tables_as_possible() -> None:
    """The same where the tables say which types they may have: it is the list that is widened."""
    tables = [make_table(f"t{i}", 10**6 + (i == 2), 64, constraints=FP32) for i in range(4)]
    found = diagnosed(make_problem(*tables, **ranks_of(240e6)))
    assert set(blamed(found)) <= {f"/model/tables/{index}/constraints/data_types" for index in range(4)}
    assert blamed(found)
    for fix in fixes_of(found, "data_type"):
        assert [(change.pointer, change.value) for change in fix.changes] == [
            ("/model/tables/2/constraints/data_types", ("fp16", "fp32"))
        ]
    wider = [fix for fix in fixes_of(found, "constraint") if fix.message.startswith("allow weights of ")]
    assert wider
    for fix in wider:
        (change,) = fix.changes
        assert change.value == ("fp16", "fp32")


def test_a_list_that_has_the_type_already_saves_nothing() -> None:
    both = TableConstraints(data_types=("fp16", "fp32"))
    found = diagnosed(make_problem(large(constraints=both), **ranks_of(25e6)))
    assert not fixes_of(found, "data_type")


def test_cached_shares_that_are_too_large_are_widened() -> None:
    """A cache of nine tenths of 256 MB in 100 MB; the constraints that stay, stay: row_wise is not allowed."""
    cached = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE}),
        compute_kernels=frozenset({Kernel.FUSED_UVM_CACHING}),
        cache_load_factors=(0.9,),
    )
    cluster = make_cluster(1, 1, hbm_bytes=100e6, ddr_bytes=1e9)
    found = diagnosed(make_problem(large(constraints=cached), cluster=cluster))
    assert blamed(found)[-1] == "/model/tables/0/constraints/cache_load_factors"
    (fix,) = [fix for fix in fixes_of(found, "constraint") if fix.changes[0].pointer.endswith("cache_load_factors")]
    (change,) = fix.changes
    assert isinstance(change.value, tuple)
    assert min(change.value) < 0.9 == max(change.value)


def test_types_that_cannot_be_trained_are_for_inference() -> None:
    trained = diagnosed(make_problem(large(data_type="fp16"), **ranks_of(25e6)))
    assert not fixes_of(trained, "data_type")
    served = diagnosed(make_problem(large(data_type="fp16", optimizer="none"), runtime="generic", **ranks_of(25e6)))
    assert [fix.changes[0].value for fix in fixes_of(served, "data_type")] == ["int8"]


def test_an_optimizer_with_less_state() -> None:
    found = diagnosed(make_problem(*[large(f"t{i}", optimizer="adam") for i in range(2)], **ranks_of(300e6)))
    fixes = fixes_of(found, "optimizer")
    assert [(fix.changes[0].value, len(fix.changes)) for fix in fixes] == [
        ("rowwise_adagrad", 1),
        ("partial_rowwise_adam", 2),
    ]


def test_what_nothing_changes_has_no_fix() -> None:
    found = diagnosed(make_problem(make_table("odd", dim=10)))
    assert found.conflict is None
    assert found.has_plan_without_constraints is False
    assert found.fixes == ()
    assert found.limit is None


def test_fixes_stand_in_the_order_of_how_little_they_change() -> None:
    found = diagnosed(make_problem(large(constraints=WHOLE, optimizer="adam"), **ranks_of(200e6)))
    order = ["constraint", "reservation", "memory", "ranks", "data_type", "optimizer"]
    kinds = [fix.kind for fix in found.fixes]
    assert kinds == sorted(kinds, key=order.index)
    assert kinds[0] == "constraint"


def test_the_smallest_fix_stands_first_and_no_bundle_where_one_kind_is_enough() -> None:
    """Two whole tables of 256 MB on ranks of 280 MB, 30% of them reserved: less of it reserved is enough alone."""
    reserved = Reservation(hbm_fraction=0.3, dense_multiplier=0.0, input_copies=0)
    tables = [large("a", WHOLE), large("b", WHOLE), large("c", WHOLE)]
    found = diagnosed(make_problem(*tables, **ranks_of(280e6), reservation=reserved))
    sizes = [len(fix.changes) for fix in found.fixes]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    for fix in found.fixes:
        assert len({change.pointer.split("/")[-1] for change in fix.changes}) == 1, fix.message


def test_where_little_is_known_one_field_is_left_out_before_several() -> None:
    """Work ends before the constraints of a conflict are told apart; the reservation plays no part in it."""
    reserved = Reservation(hbm_fraction=0.01, dense_multiplier=0.0, input_copies=0)
    only = TableConstraints(ranks=frozenset({0, 1}))
    tables = [*(large(f"t{i}", only) for i in range(12)), make_table("b", constraints=WHOLE)]
    problem = make_problem(*tables, **ROOM, reservation=reserved)
    found = diagnose(problem, (), Attempts(ROOFLINE, replace(LIMITS, work_limit_seconds=0.3)))
    assert found.fixes
    for fix in found.fixes:
        assert len({change.pointer.split("/")[-1] for change in fix.changes}) == 1, fix.message


def test_equal_problems_have_equal_diagnoses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the load of the machine: little work is counted, so that the clock is far away."""
    monkeypatch.setattr(trial_solves, "COUNTED", 0.1)
    problem = make_problem(*[large(f"t{i}", WHOLE, optimizer="adam") for i in range(6)], **ranks_of(300e6))
    assert diagnosed(problem) == diagnosed(problem)


def test_where_the_work_runs_out_it_says_so() -> None:
    limits = replace(LIMITS, work_limit_seconds=0.01)
    attempts = Attempts(ROOFLINE, limits)
    found = diagnose(make_problem(large(constraints=WHOLE), **ranks_of(200e6)), (), attempts)
    assert found.limit == "deterministic_time"
    assert found.num_solves < 12


def test_more_hardware_is_found_before_the_constraints_of_hundreds_of_tables_are_distinguished() -> None:
    """Where every table names one kernel there are as many constraints as tables; telling them apart takes it all."""
    fused = TableConstraints(compute_kernels=frozenset({Kernel.FUSED}))
    tables = [large(f"t{index}", fused) for index in range(200)]
    reserved = Reservation(hbm_fraction=0.15, dense_multiplier=0.0, input_copies=0)
    problem = make_problem(*tables, cluster=make_cluster(3, 8, hbm_bytes=1.75e9), reservation=reserved)
    limits = replace(LIMITS, work_limit_seconds=5.0)
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=limits)
    assert result.diagnosis is not None
    (hosts,) = fixes_of(result.diagnosis, "ranks")
    assert [(change.pointer, change.value) for change in hosts.changes] == [("/hardware/num_hosts", 5)]
    assert fixes_of(result.diagnosis, "memory")


def test_a_conflict_that_was_not_narrowed_down_says_so_and_has_a_fix_nevertheless() -> None:
    """Nine of twelve tables of 256 MB do not fit ranks 0 and 1; which nine takes more solves than there are."""
    only = TableConstraints(ranks=frozenset({0, 1}))
    problem = make_problem(*[large(f"t{i}", only) for i in range(12)], make_table("b", constraints=WHOLE), **ROOM)
    limits = replace(LIMITS, work_limit_seconds=0.4)
    attempts = Attempts(ROOFLINE, limits)
    found = diagnose(problem, (), attempts)
    assert found.conflict is not None
    assert not found.conflict.is_irreducible
    assert 9 <= len(found.conflict.constraints) <= 12
    assert all(pointer.endswith("/ranks") for pointer in blamed(found))
    (fix,) = fixes_of(found, "constraint")
    gone = {change.pointer for change in fix.changes}
    assert all(change.value is None for change in fix.changes)
    rest = with_only(problem, [one for one in constraints_of(problem) if one.pointer not in gone])
    assert plan(rest, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS).plan is not None
    assert fix.message.count("may only be on ranks") <= 3


def test_one_solve_is_enough_to_free_the_table_that_is_short() -> None:
    """Where there is work for one solve only, it is of the problem without the constraints of that table."""
    problem = make_problem(large("a", WHOLE), make_table("b", constraints=WHOLE), **ranks_of(200e6))
    short = Shortfall(
        resource="hbm", required_bytes=256e6, available_bytes=200e6, scope="rank", table="a", message="", hint=""
    )
    limits = replace(LIMITS, work_limit_seconds=1e-3)
    for is_proven in (True, False):
        attempts = Attempts(ROOFLINE, limits)
        found = diagnose(problem, [short], attempts, is_proven=is_proven)
        assert found.num_solves == 1
        assert found.has_plan_without_constraints
        assert found.conflict is not None
        assert (found.conflict.is_irreducible, found.conflict.is_proven) == (False, is_proven)
        (fix,) = found.fixes
        assert [change.pointer for change in fix.changes] == ["/model/tables/0/constraints/sharding_types"]


@thorough
def test_two_fixes_of_a_kind_stand_for_those_of_equal_tables() -> None:
    found = diagnosed(make_problem(*[large(f"t{i}", WHOLE) for i in range(5)], **ranks_of(400e6)))
    assert len(blamed(found)) == 5
    assert found.conflict is not None
    assert found.conflict.is_irreducible
    assert len(fixes_of(found, "constraint")) == 2


def test_compiled_code_is_read_before_the_clock_of_a_diagnosis_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first solve that reads it takes half a second longer, which is all that a diagnosis of a short solve has."""
    order: list[str] = []

    class Clocked(Attempts):
        def __init__(self, *arguments: object) -> None:
            order.append("clock")
            super().__init__(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "load_constructions", lambda: order.append("read"))
    monkeypatch.setattr(pipeline, "Attempts", Clocked)
    diagnosed(make_problem(large(constraints=WHOLE), make_table("b"), **ranks_of(200e6)))
    assert order == ["read", "clock"]


def test_a_problem_with_a_plan_is_not_diagnosed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "diagnose", None)
    result = plan(make_problem(), cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS)
    assert result.plan is not None
    assert result.diagnosis is None


def test_a_slip_of_units_is_the_first_fix() -> None:
    cluster = make_cluster(1, 4, ddr_bytes=0)
    stated = cluster.hardware.with_overrides({"hbm_bytes": 80.0}, {"hbm_bytes": "bytes"})
    cluster = replace(cluster, hardware=stated)
    found = diagnosed(make_problem(large(), make_table("b"), cluster=cluster))
    assert found.fixes[0].changes[0].value == 80 * 10**9
    assert found.fixes[0].message.startswith("hardware.overrides.hbm_bytes of 80 bytes looks like a slip of units")
