"""Warm starts: a plan of a neighbouring problem is where a search begins, and what its answer is never worse than."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from cost_models.protocol import CostModel
from cost_models.vocabulary import Scheme
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.options.host_memory_fallback import allow_host_memory
from planner.orchestration.placement.warm_start import locate_warm_start
from planner.pipeline import plan
from planner.pricing.price_options import prune
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import NO_OPTIONS, SearchOptions, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.resume import resume
from planner.solver.partitioners.warm_start import begin_warm
from planner.solver.problem import Outcome, Scope, SolverProblem
from planner.verification.evaluate_placement import score
from tests.planner.orchestration.test_relinearise import MODEL
from tests.support.planning.begun_solves import begun_solve
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

#: Counted work ends the search; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.2, relative_gap=0.0)
LITTLE = replace(LIMITS, work_limit_seconds=0.01)


class OnlyStarts:
    """A partitioner that finds nothing: the answer is the plan that the search began with."""

    name = "only_starts"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        return Outcome.without_plan(self.name, "deterministic_time")


def factors(num_tables: int = 60) -> list[float]:
    return np.exp(np.random.default_rng(0).normal(1.0, 1.0, num_tables)).tolist()


def job(num_hosts: int = 2, batch: int = 4096, hbm_bytes: float = 80e9, num_tables: int = 60) -> Problem:
    """Tables of different sizes on hosts of four ranks."""
    tables = [
        make_table(f"t{i}", rows=100_000 * (1 + i % 7), dim=(64, 128, 32)[i % 3], pooling_factor=factor)
        for i, factor in enumerate(factors(num_tables))
    ]
    cluster = make_cluster(num_hosts, 4, hbm_bytes=hbm_bytes)
    return make_problem(*tables, cluster=cluster, batch_size_per_rank=batch, pipeline="none")


@functools.cache
def runs() -> Plan:
    """The plan of two hosts."""
    return planned(job())


def planned(
    problem: Problem,
    warm_start: Placement | None = None,
    limits: SolveLimits = LIMITS,
    cost_model: CostModel = ROOFLINE,
    partitioner: object = None,
) -> Plan:
    searching = LocalSearch() if partitioner is None else partitioner
    found = plan(problem, cost_model=cost_model, partitioner=searching, limits=limits, warm_start=warm_start).plan
    assert found is not None
    return found


def seconds(found: Plan) -> float:
    return found.evaluation.objective_seconds


def test_the_plan_of_the_same_problem_is_the_answer_at_once() -> None:
    found = planned(job(), runs().placement, partitioner=OnlyStarts())
    assert seconds(found) <= seconds(runs()) < seconds(planned(job(), partitioner=OnlyStarts()))
    assert found.partitioner == "warm_start"
    assert found.movement is None


def test_the_next_batch_begins_with_the_plan_of_this_one() -> None:
    following = job(batch=5120)
    begun = planned(following, runs().placement, partitioner=OnlyStarts())
    stays = score(following, runs().placement, ROOFLINE).objective_seconds
    cold = planned(following, partitioner=OnlyStarts())
    assert seconds(begun) <= stays < seconds(cold)
    assert seconds(planned(following, runs().placement, LITTLE)) <= stays


def test_what_no_longer_fits_takes_less_memory() -> None:
    """With less memory a part of the tables goes to host memory, by price: moving until all fits ends far worse."""
    wide, tight = planned(job(hbm_bytes=1.2e9)), allow_host_memory(job(hbm_bytes=0.9e9))
    assert tight is not None
    begun = begun_solve(tight, LIMITS)
    located, priced = locate_warm_start(tight, begun.context.families, wide.placement), prune(begun.priced)
    in_place = located.in_place(priced)
    found, is_close = begin_warm(priced, in_place, located.alike(priced), LIMITS)
    repaired = resume(priced, in_place, LIMITS)
    assert found.assignment is not None
    assert repaired.assignment is not None
    assert not violations(priced, found.assignment)
    assert objective_of(priced, found.assignment) < 0.9 * objective_of(priced, repaired.assignment)
    assert not is_close


def test_a_plan_in_place_is_close() -> None:
    begun = begun_solve(job(), LIMITS)
    located, priced = locate_warm_start(job(), begun.context.families, runs().placement), prune(begun.priced)
    found, is_close = begin_warm(priced, located.in_place(priced), located.alike(priced), LIMITS)
    assert is_close
    assert found.assignment is not None
    assert objective_of(priced, found.assignment) <= seconds(runs()) * (1 + 1e-9)


@pytest.mark.parametrize("num_hosts", [1, 3, 4])
def test_clusters_of_another_size_begin_no_worse_than_without(num_hosts: int) -> None:
    other = job(num_hosts)
    begun, cold = (planned(other, start, partitioner=OnlyStarts()) for start in (runs().placement, None))
    assert seconds(begun) <= seconds(cold)
    found = planned(other, runs().placement)
    assert seconds(found) <= seconds(begun)
    assert found.placement.world_size == 4 * num_hosts


def test_more_ranks_take_over_how_tables_are_cut() -> None:
    """What is most like a table of the plan has its sharding type, whatever the ranks."""
    tables = [make_table(f"t{i}", rows=1000, dim=64, pooling_factor=20.0) for i in range(8)]
    small, large = (make_problem(*tables, cluster=make_cluster(1, ranks)) for ranks in (2, 4))
    runs = planned(small)
    begun = begun_solve(large, LIMITS)
    located = locate_warm_start(large, begun.context.families, runs.placement)
    priced = prune(begun.priced)
    alike = located.alike(priced)
    schemes = [one.scheme for one in begun.context.families.families]
    for table, placed in enumerate(runs.placement.tables):
        mine = np.flatnonzero(alike & (priced.option_table == table))
        chosen = {schemes[priced.family_source[priced.option_family[option]]] for option in mine.tolist()}
        assert chosen == {placed.sharding_type}


def test_tables_are_known_by_name_and_new_ones_are_placed() -> None:
    runs = planned(job(num_tables=40))
    found = planned(job(num_tables=60), runs.placement, partitioner=OnlyStarts())
    assert {one.name for one in found.placement.tables} == {f"t{i}" for i in range(60)}
    assert seconds(found) <= seconds(planned(job(num_tables=60), partitioner=OnlyStarts()))


def test_a_plan_of_other_tables_changes_nothing() -> None:
    others = planned(job(num_tables=20)).placement
    renamed = replace(others, tables=tuple(replace(one, name=f"x{one.name}") for one in others.tables))
    found, cold = (planned(job(), start, partitioner=OnlyStarts()) for start in (renamed, None))
    assert seconds(found) <= seconds(cold)


def test_rows_that_changed_leave_the_sharding_type_known() -> None:
    grown = replace(job(), tables=tuple(replace(one, num_embeddings=2 * one.num_embeddings) for one in job().tables))
    begun = begun_solve(grown, LIMITS)
    located = locate_warm_start(grown, begun.context.families, runs().placement)
    assert len(located.piece_family) == 0
    assert np.all(located.num_pieces > 0)
    assert seconds(planned(grown, runs().placement, partitioner=OnlyStarts())) > 0


def test_pieces_that_may_not_lie_there_any_more_are_placed_elsewhere() -> None:
    tables = [
        replace(one, constraints=replace(one.constraints, ranks=frozenset({5, 6}))) if one.name == "t0" else one
        for one in job().tables
    ]
    found = planned(replace(job(), tables=tuple(tables)), runs().placement, partitioner=OnlyStarts())
    assert set(found.placement.tables[0].shards.rank.tolist()) <= {5, 6}


def test_a_learned_model_begins_there_too() -> None:
    """The first plan that a search reports is priced by the model itself: the start counts, whatever searches find."""
    tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=5.0 + i) for i in range(12)]
    problem = make_problem(*tables, cluster=make_cluster(1, 4))
    runs = planned(problem, cost_model=MODEL)  # type: ignore[arg-type]
    rated = score(problem, runs.placement, MODEL).objective_seconds
    found = planned(problem, runs.placement, LITTLE, MODEL, OnlyStarts())  # type: ignore[arg-type]
    assert seconds(found) <= rated * (1 + 1e-9)


def test_every_size_of_groups_begins_with_the_plan_of_one() -> None:
    cluster = make_cluster(2, 4)
    groups = ReplicaGroups(
        job=cluster, sizes=ReplicaGroups.sizes_of(cluster, contiguous=False), sync_interval_steps=100
    )
    problem = replace(job(num_tables=12), cluster=cluster, replica_groups=groups)
    runs = planned(problem)
    found = planned(problem, runs.placement, LITTLE, partitioner=OnlyStarts())
    assert seconds(found) <= seconds(runs) * (1 + 1e-9)


def test_equal_warm_starts_give_equal_plans() -> None:
    first, second = (planned(job(batch=6000), runs().placement, LITTLE) for _ in range(2))
    assert first.placement == second.placement


def test_greedy_has_the_start_compete() -> None:
    assert seconds(planned(job(), runs().placement, partitioner=Greedy())) <= seconds(runs())


def test_not_together_with_a_previous_plan() -> None:
    with pytest.raises(ValueError, match="not both"):
        plan(
            job(),
            cost_model=ROOFLINE,
            partitioner=LocalSearch(),
            limits=LITTLE,
            warm_start=runs().placement,
            previous=PreviousPlan(placement=runs().placement),
        )


def test_pieces_in_place_are_those_of_the_plan() -> None:
    begun = begun_solve(job(), LIMITS)
    priced = begun.priced
    found = locate_warm_start(job(), begun.context.families, runs().placement).in_place(priced)
    assert len(np.unique(priced.shape_table[found.piece_shape])) == 60
    for table, placed in enumerate(runs().placement.tables):
        mine = priced.shape_table[found.piece_shape] == table
        if (
            priced.shape_scope[found.piece_shape[mine]][0] == Scope.RANK
            and placed.sharding_type != Scheme.DATA_PARALLEL
        ):
            assert found.piece_site[mine].tolist() == placed.shards.rank.tolist()
