"""Plans that run already: what stays, what moves, and for how much."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Scheme
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Plan, PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.orchestration.answers.conclude import BYTES_MOVED
from planner.orchestration.previous_plan import allow_previous_piece_widths
from planner.pipeline import plan
from planner.solver.partitioners.base import Partitioner, SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.exact.mathopt import MathOpt
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.movement import transfer
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.long_plans import to_document
from tests.support.planning.whole_tables import whole_table
from tests.support.thorough import thorough

#: Counted work ends the search; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=0.3, relative_gap=0.0)


def solve(problem: Problem, previous: PreviousPlan | None = None, limits: SolveLimits = LIMITS) -> PlanResult:
    return plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=limits, previous=previous)


def planned(problem: Problem, previous: PreviousPlan | None = None) -> Plan:
    found = solve(problem, previous).plan
    assert found is not None
    return found


def problem_of(factors: np.ndarray, *, hbm_bytes: float = 80e9) -> Problem:
    """Tables of different sizes on two hosts of four ranks; ``factors`` are their ids per sample."""
    tables = [
        make_table(f"t{i}", rows=10_000 * (1 + i % 7), dim=(64, 128, 32)[i % 3], pooling_factor=float(factor))
        for i, factor in enumerate(factors)
    ]
    return make_problem(
        *tables, cluster=make_cluster(2, 4, hbm_bytes=hbm_bytes), batch_size_per_rank=4096, pipeline="none"
    )


def factors(seed: int = 0, num_tables: int = 60) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(1.0, 1.0, num_tables))


def drifted(change: float, part: float, seed: int = 1) -> np.ndarray:
    """Ids per sample of which some have become ``change`` times as many, or as few."""
    rng = np.random.default_rng(seed)
    by = np.where(rng.random(60) < 0.5, change, 1 / change)
    return factors() * np.where(rng.random(60) < part, by, 1.0)


def before(problem: Problem | None = None) -> Placement:
    return planned(problem or problem_of(factors())).placement


def test_small_drift_keeps_the_plan_byte_for_byte() -> None:
    runs = before()
    rng = np.random.default_rng(3)
    problem = problem_of(factors() * np.exp(rng.normal(0, 0.01, 60)))
    found = planned(problem, PreviousPlan(placement=runs))
    assert found.placement == runs
    assert found.movement is not None
    assert (found.movement.moved_bytes, found.movement.charged_seconds) == (0, 0)
    assert found.movement.break_even_steps is None
    assert found.movement.previous_seconds == found.evaluation.objective_seconds


@thorough
def test_much_of_the_gain_for_a_few_of_the_bytes() -> None:
    """A twentieth of the bytes gains more than a third of what a free choice gains, and ends close to it."""
    runs = before()
    problem = problem_of(drifted(2.0, 0.2))
    free = planned(problem)
    total = transfer(problem.tables, runs, runs).unmoved_bytes
    found = planned(problem, PreviousPlan(placement=runs, max_moved_bytes=0.05 * total))
    movement = found.movement
    assert movement is not None
    assert movement.previous_seconds is not None
    assert 0 < movement.moved_bytes <= 0.05 * total
    gain = movement.previous_seconds - found.evaluation.objective_seconds
    assert gain >= (movement.previous_seconds - free.evaluation.objective_seconds) / 3
    assert found.evaluation.objective_seconds <= 1.03 * free.evaluation.objective_seconds
    assert movement.saved_seconds_per_step == gain
    assert movement.seconds is not None
    assert movement.break_even_steps == np.ceil(movement.seconds / gain)


@thorough
def test_a_costlier_move_moves_less_and_an_endless_price_nothing() -> None:
    runs = before()
    problem = problem_of(drifted(2.0, 0.2))
    moved = []
    for steps in (10**12, 10, 1):
        movement = planned(problem, PreviousPlan(placement=runs, remaining_steps=steps)).movement
        assert movement is not None
        moved.append(movement.moved_bytes)
    assert moved[0] > moved[1] >= moved[2]
    with_gain = planned(problem, PreviousPlan(placement=runs, min_relative_gain=1.0))
    assert with_gain.placement == runs


@thorough
def test_the_answer_is_never_worse_than_staying() -> None:
    for seed in range(3):
        problem = problem_of(drifted(1.3, 0.5, seed))
        found = planned(problem, PreviousPlan(placement=before(), min_relative_gain=0.0)).movement
        assert found is not None
        assert found.saved_seconds_per_step is not None
        assert found.saved_seconds_per_step >= found.charged_seconds >= 0


@thorough
def test_a_price_of_nothing_gains_as_much_as_a_free_choice() -> None:
    problem = problem_of(drifted(2.0, 0.2))
    free = planned(problem)
    found = planned(problem, PreviousPlan(placement=before(), remaining_steps=10**12, min_relative_gain=0.0))
    assert found.evaluation.objective_seconds <= free.evaluation.objective_seconds * 1.01
    assert found.lower_bound_seconds == free.lower_bound_seconds


@thorough
def test_equal_requests_give_equal_bytes() -> None:
    problem, runs = problem_of(drifted(2.0, 0.2)), before()
    documents = []
    for _ in range(2):
        found = planned(problem, PreviousPlan(placement=runs, max_moved_bytes=2e6))
        timeless = replace(found, solver_seconds=0.0, found_seconds=0.0, late_gain_seconds=None)
        document = to_document(timeless, name="m", spec_digest="", hardware_profile="test")
        documents.append(canonical_bytes(document))
    assert documents[0] == documents[1]


def test_movement_is_no_part_of_the_digest() -> None:
    problem = problem_of(factors())
    runs = before(problem)
    documents = [
        to_document(found, name="m", spec_digest="", hardware_profile="test")
        for found in (planned(problem), planned(problem, PreviousPlan(placement=runs)))
    ]
    assert documents[0]["plan_digest"] == documents[1]["plan_digest"]
    assert documents[0]["movement"] is None
    assert documents[1]["movement"] is not None


def with_table(problem: Problem, table: Table) -> Problem:
    return replace(problem, tables=(*problem.tables, table))


def test_a_new_table_goes_next_to_those_that_stay() -> None:
    problem = problem_of(factors())
    runs = before(problem)
    found = planned(with_table(problem, make_table("new", rows=5000, dim=64)), PreviousPlan(placement=runs))
    assert found.placement.tables[:-1] == runs.tables
    assert found.movement is not None
    assert found.movement.moved_bytes == 0
    assert found.movement.new_bytes > 0
    assert found.movement.previous_seconds is None
    assert 'table "new" is not placed' in found.movement.previous_issue


def test_tables_that_may_no_longer_be_where_they_are_move_and_others_stay() -> None:
    problem = problem_of(factors())
    runs = before(problem)
    constraints = TableConstraints(ranks=frozenset({7 - runs.tables[0].shards[0].rank}))
    tables = (replace(problem.tables[0], constraints=constraints), *problem.tables[1:])
    found = planned(replace(problem, tables=tables), PreviousPlan(placement=runs, remaining_steps=1))
    assert found.movement is not None
    assert found.movement.previous_seconds is None
    changed = [new.name for new, old in zip(found.placement.tables, runs.tables, strict=True) if new != old]
    assert "t0" in changed
    assert len(changed) < 10


@thorough
def test_less_memory_moves_what_does_not_fit() -> None:
    problem = problem_of(factors())
    runs = before(problem)
    used = [sum(rank.bytes.values()) for rank in planned(problem).evaluation.ranks]
    smaller = problem_of(factors(), hbm_bytes=np.floor(np.mean(used) * 1.02))
    found = planned(smaller, PreviousPlan(placement=runs, remaining_steps=1))
    assert found.movement is not None
    assert found.movement.previous_seconds is None
    assert 0 < found.movement.moved_bytes < found.movement.kept_bytes


@thorough
def test_another_cluster_keeps_what_ranks_of_the_same_number_hold() -> None:
    problem = problem_of(factors())
    runs = before(problem)
    larger = replace(problem, cluster=make_cluster(3, 4))
    found = planned(larger, PreviousPlan(placement=runs, remaining_steps=1))
    assert found.movement is not None
    assert "8 ranks" in found.movement.previous_issue
    assert found.movement.kept_bytes > 0
    assert len(found.movement.received_bytes) == 12


def test_a_budget_that_no_plan_keeps_is_reported_with_the_bytes_that_would_do() -> None:
    problem = problem_of(factors(num_tables=3))
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    runs = before(replace(problem, tables=(replace(problem.tables[0], constraints=whole), *problem.tables[1:])))
    elsewhere = TableConstraints(ranks=frozenset(range(8)) - {shard.rank for shard in runs.tables[0].shards})
    tables = (replace(problem.tables[0], constraints=elsewhere), *problem.tables[1:])
    moved = replace(problem, tables=tables)
    result = solve(moved, PreviousPlan(placement=runs, max_moved_bytes=1000.0))
    assert (result.plan, result.limit) == (None, BYTES_MOVED)
    (short,) = result.shortfalls
    assert short.available_bytes == 1000
    enough = solve(moved, PreviousPlan(placement=runs, max_moved_bytes=short.required_bytes))
    assert enough.plan is not None
    assert enough.plan.movement is not None
    assert enough.plan.movement.moved_bytes <= short.required_bytes


def test_pieces_narrower_than_listed_stay() -> None:
    narrow = TableConstraints(min_partition=16)
    problem = problem_of(factors())
    tables = tuple(replace(table, constraints=narrow) for table in problem.tables)
    runs = before(replace(problem, tables=tables))
    widths = [shard.num_columns for table in runs.tables for shard in table.shards]
    found = planned(problem, PreviousPlan(placement=runs))
    assert min(widths) >= 16
    assert found.movement is not None
    assert found.movement.previous_seconds is not None


def test_pieces_are_listed_as_narrow_as_those_that_run_and_no_narrower() -> None:
    cut = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}), min_partition=16)
    tables = [replace(make_table(f"t{i}", rows=10_000, dim=32), constraints=cut) for i in range(3)]
    problem = make_problem(*tables, cluster=make_cluster(1, 4), batch_size_per_rank=4096)
    runs = before(problem)
    assert {shard.num_columns for shard in runs.tables[0].shards} == {16}
    wide = replace(tables[1], embedding_dim=64)  # another table now, of the same name
    tables = [replace(table, constraints=TableConstraints()) for table in (tables[0], wide)] + [tables[2]]
    allowed = allow_previous_piece_widths(replace(problem, tables=tuple(tables)), PreviousPlan(placement=runs))
    assert [table.constraints.min_partition for table in allowed.tables] == [16, None, 16]


def test_whole_tables_that_are_narrow_make_no_other_cut_legal() -> None:
    """16 columns are less than the least width of a piece, and no piece: the table stays whole."""
    cut = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE, Scheme.COLUMN_WISE}))
    tables = [make_table(f"t{i}", rows=10_000, dim=16, pooling_factor=200.0, constraints=cut) for i in range(2)]
    problem = make_problem(*tables, cluster=make_cluster(1, 8), batch_size_per_rank=4096)
    free = planned(problem)
    found = planned(problem, PreviousPlan(placement=free.placement, remaining_steps=10**12, min_relative_gain=0.0))
    assert {shard.num_columns for table in found.placement.tables for shard in table.shards} == {16}
    assert found.evaluation.objective_seconds >= free.lower_bound_seconds


def test_a_previous_plan_of_other_tables_alone_is_no_trouble() -> None:
    """Tables of the same names that have other columns now: nothing of them is there yet."""
    problem = problem_of(factors(num_tables=3))
    wider = replace(problem, tables=tuple(replace(table, embedding_dim=256) for table in problem.tables))
    found = planned(wider, PreviousPlan(placement=before(problem), max_moved_bytes=0.0))
    assert found.movement is not None
    assert (found.movement.moved_bytes, found.movement.kept_bytes) == (0, 0)


@pytest.mark.parametrize("name", ["other", "t1"])
def test_tables_that_are_gone_are_no_trouble(name: str) -> None:
    problem = problem_of(factors())
    runs = before(problem)
    gone = TablePlacement(
        name=name if name == "other" else "more",
        sharding_type=runs.tables[0].sharding_type,
        compute_kernel=runs.tables[0].compute_kernel,
        shards=runs.tables[0].shards,
    )
    found = planned(problem, PreviousPlan(placement=replace(runs, tables=(*runs.tables, gone))))
    assert found.placement == runs


def test_exact_partitioners_stay_within_the_bytes_that_may_move() -> None:
    problem = problem_of(factors(num_tables=4))
    runs = before(problem)
    other = problem_of(factors(num_tables=4)[::-1].copy())
    found = plan(
        other,
        cost_model=ROOFLINE,
        partitioner=Portfolio(),
        limits=LIMITS,
        previous=PreviousPlan(placement=runs, max_moved_bytes=0.0),
    ).plan
    assert found is not None
    assert found.placement == runs


@pytest.mark.parametrize("partitioner", [Portfolio(), CpSat(), MathOpt(), LocalSearch()], ids=lambda one: one.name)
def test_streamed_plans_stay_within_the_bytes_that_may_move(partitioner: Partitioner) -> None:
    """Two equal tables on one of two ranks: whatever moves gains much, and nothing may move."""
    tables = [make_table(name, rows=100_000, dim=64, pooling_factor=20.0) for name in ("a", "b")]
    problem = make_problem(*tables, cluster=make_cluster(1, 2), batch_size_per_rank=1024)
    on_first = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}), ranks=frozenset({0}))
    runs = before(replace(problem, tables=tuple(replace(table, constraints=on_first) for table in tables)))
    previous = PreviousPlan(placement=runs, max_moved_bytes=1000.0, remaining_steps=10**9, min_relative_gain=0.0)
    streamed: list[PlanResult] = []
    result = plan(
        problem,
        cost_model=ROOFLINE,
        partitioner=partitioner,
        limits=LIMITS,
        previous=previous,
        on_result=streamed.append,
    )
    movements = [one.plan.movement for one in (*streamed, result) if one.plan is not None]
    assert len(movements) > 1
    assert [movement.moved_bytes for movement in movements if movement is not None] == [0.0] * len(movements)


def test_streamed_plans_are_charged_as_the_last_is() -> None:
    """A previous plan that must be completed has no price by itself: the gain that is asked for is a part of the
    completed plan's, known only after that. Here one mode stays, and the other moves both tables to gain much.
    """
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}), ranks=frozenset({0}))
    tables = [
        make_table(name, rows=100_000, dim=64, pooling=pooling, pooling_factor=20.0)
        for name, pooling in (("a", "mean"), ("b", "sum"))
    ]
    cluster = make_cluster(1, 2)
    runs = before(make_problem(*(replace(table, constraints=whole) for table in tables), cluster=cluster))
    schemes = (Scheme.TABLE_WISE, Scheme.ROW_WISE)
    free = [replace(table, constraints=TableConstraints(sharding_types=frozenset(schemes))) for table in tables]
    problem = make_problem(*free, make_table("new", rows=5000, dim=64), cluster=cluster)
    streamed: list[PlanResult] = []
    result = plan(
        problem,
        cost_model=ROOFLINE,
        partitioner=Portfolio(),
        limits=LIMITS,
        previous=PreviousPlan(placement=runs, min_relative_gain=1.0, remaining_steps=10**12),
        on_result=streamed.append,
    )
    movements = [one.plan.movement for one in (*streamed, result) if one.plan is not None]
    assert len(movements) > 1
    assert [movement.moved_bytes for movement in movements if movement is not None] == [0.0] * len(movements)


def choosing(name: str, **more: object) -> Table:
    types = TableConstraints(data_types=("fp16", "fp32"), sharding_types=frozenset({Scheme.TABLE_WISE}))
    return make_table(name, 1000, 64, constraints=types, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("max_moved_bytes", [0.0, 100.0])
def test_tables_whose_type_was_chosen_stay_within_the_bytes_that_may_move(max_moved_bytes: float) -> None:
    """Both lie on one rank as fp16; a type that a table may have makes it no new table, free to go."""
    problem = make_problem(choosing("a"), choosing("b"), cluster=make_cluster(1, 2))
    on_one = tuple(whole_table(table, data_type="fp16") for table in problem.tables)
    placement = Placement(world_size=2, ranks_per_host=2, tables=on_one)
    found = planned(problem, PreviousPlan(placement=placement, max_moved_bytes=max_moved_bytes, remaining_steps=10**9))
    assert found.movement is not None
    assert (found.movement.moved_bytes, found.movement.new_bytes) == (0, 0)
    assert found.movement.kept_bytes == 2 * 64_000 * 2
    assert {rank for one in found.placement.tables for rank in one.shards.rank.tolist()} == {0}


def test_a_table_stays_though_another_module_has_one_of_its_name_now() -> None:
    one = make_problem(make_table("item", module_path="m.a"), make_table("user", module_path="m.a"))
    two = make_problem(
        make_table("m.a/item", module_path="m.a"),
        make_table("user", module_path="m.a"),
        make_table("m.b/item", module_path="m.b"),
    )
    for was, now, num_new in ((one, two, 1), (two, one, 0)):
        before_ = planned(was)
        found = planned(now, PreviousPlan(placement=before_.placement, max_moved_bytes=0.0, remaining_steps=1))
        assert found.movement is not None
        new = now.tables[2].weight_bytes if num_new else 0
        assert found.movement.new_bytes >= new
        assert found.movement.moved_bytes == 0
        assert found.movement.kept_bytes >= sum(table.weight_bytes for table in one.tables)
