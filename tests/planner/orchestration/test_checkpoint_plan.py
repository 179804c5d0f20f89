"""Plans of jobs that start from a checkpoint of another cluster: nothing is lost, and no such plan is better."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.checkpoint_plan import CheckpointPlan, Keep
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.orchestration.placement.from_placement import pieces_of
from planner.output.explain.explanation import explain
from planner.pipeline import plan
from planner.solver.bounds.chain import lower_bound
from planner.solver.partitioners.base import Partitioner, SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.exact.mathopt import MathOpt
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.kernels.anneal import anneal
from planner.solver.partitioners.ldm.ldm import Ldm
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.local_search.proposal_mix import ProposalRates, cumulative_mix
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Reason
from planner.verification.stored_state import state_loss, stored_state
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, brute_force, make_cluster, make_problem, make_table
from tests.support.planning.layouts import laid_out, laid_out_on

LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=0.3, relative_gap=0.0)
#: Widths of which the search would make others: three different ones, not in order.
WIDTHS = (32, 160, 64)


def tables() -> list[Table]:
    optimizers = ("rowwise_adagrad", "adagrad", "sgd")
    return [
        make_table(
            f"t{i}",
            rows=40_000 * (1 + i % 5),
            dim=256 if i % 4 == 0 else 128,
            pooling_factor=float(1 + 3 * (i % 7)),
            optimizer=optimizers[i % 3] if i % 4 else "rowwise_adagrad",
        )
        for i in range(12)
    ]


def checkpoint() -> tuple[TablePlacement, ...]:
    """Of four ranks: wide tables in pieces of three widths, the others by rows, whole, or copied."""
    schemes = (Scheme.ROW_WISE, Scheme.TABLE_WISE, Scheme.DATA_PARALLEL)
    return tuple(
        laid_out(table, Scheme.COLUMN_WISE, widths=WIDTHS, first=i)
        if i % 4 == 0
        else laid_out(
            table, schemes[i % 3], kernel=Kernel.DENSE if schemes[i % 3].is_replicated else Kernel.FUSED, first=i
        )
        for i, table in enumerate(tables())
    )


def resumed(*, keep: Keep = "state", num_hosts: int = 1, ranks_per_host: int = 2) -> Problem:
    problem = make_problem(*tables(), cluster=make_cluster(num_hosts, ranks_per_host), batch_size_per_rank=2048)
    return replace(problem, checkpoint_plan=CheckpointPlan(placement=laid_out_on(4, 2, *checkpoint()), keep=keep))


def assert_loadable(problem: Problem, found: tuple[TablePlacement, ...]) -> None:
    for table, before, after in zip(problem.tables, checkpoint(), found, strict=True):
        assert state_loss(table.optimizer, stored_state(before), stored_state(after)) == "", table.name
    for after in found[::4]:
        first = np.unique(after.shards.column_offset, return_index=True)[1]
        assert tuple(after.shards.num_columns[first].tolist()) == WIDTHS


@pytest.mark.parametrize("partitioner", [LocalSearch(), Portfolio(), Greedy(), Ldm(), CpSat(), MathOpt()])
def test_every_partitioner_keeps_cuts_and_their_order(partitioner: Partitioner) -> None:
    problem = resumed(num_hosts=2, ranks_per_host=3)
    result = plan(problem, cost_model=ROOFLINE, partitioner=partitioner, limits=LIMITS)
    assert result.plan is not None
    assert verify(problem, result.plan.placement) == ()
    assert_loadable(problem, result.plan.placement.tables)


def test_a_free_plan_would_lose_state() -> None:
    problem = resumed(num_hosts=2, ranks_per_host=3)
    free = plan(replace(problem, checkpoint_plan=None), cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS)
    bound = plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS)
    assert free.plan is not None
    assert bound.plan is not None
    assert {issue.code for issue in verify(problem, free.plan.placement)} == {"checkpoint-state"}
    assert free.lower_bound_seconds <= bound.plan.evaluation.objective_seconds


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 2), (4, 4)])
def test_schemes_stay_on_clusters_of_any_size(shape: tuple[int, int]) -> None:
    num_hosts, ranks_per_host = shape
    problem = resumed(keep="schemes", num_hosts=num_hosts, ranks_per_host=ranks_per_host)
    if shape == (1, 1):  # one rank has nothing to share rows with
        problem = replace(problem, checkpoint_plan=replace(problem.checkpoint_plan, keep="state"))  # type: ignore[type-var]
    result = plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS)
    assert result.plan is not None
    assert_loadable(problem, result.plan.placement.tables)
    if shape != (1, 1):
        schemes = [placed.sharding_type for placed in result.plan.placement.tables]
        assert schemes == [placed.sharding_type for placed in checkpoint()]


@pytest.mark.parametrize("keep", ["state", "schemes"])
def test_bounds_hold_and_the_best_plan_is_found(keep: Keep) -> None:
    """All plans of two tables on two ranks, by brute force."""
    few = (tables()[0], tables()[3])
    before = CheckpointPlan(placement=laid_out_on(4, 2, checkpoint()[0], checkpoint()[3]), keep=keep)
    problem = make_problem(*few, cluster=make_cluster(1, 2), batch_size_per_rank=2048)
    problem = replace(problem, checkpoint_plan=before)
    listed = list_and_price(problem, ROOFLINE)
    assert not isinstance(listed, Infeasibility)
    best = brute_force(listed[1])
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS)
    assert best is not None
    assert result.plan is not None
    assert lower_bound(listed[1]).seconds <= best * (1 + 1e-9)
    assert result.lower_bound_seconds <= best * (1 + 1e-9)
    assert result.plan.evaluation.objective_seconds == pytest.approx(best, rel=1e-9)
    assert result.reason is Reason.OPTIMAL


def test_a_previous_plan_that_loses_state_is_not_gone_back_to() -> None:
    """The plan that runs has other pieces than the checkpoint: it is mended, and what moves is counted."""
    problem = resumed(num_hosts=2, ranks_per_host=2)
    runs = laid_out_on(
        4,
        2,
        *(
            laid_out(table, Scheme.COLUMN_WISE, widths=(64, 64, 128)) if i % 4 == 0 else checkpoint()[i]
            for i, table in enumerate(tables())
        ),
    )
    previous = PreviousPlan(placement=runs)
    result = plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS, previous=previous)
    assert result.plan is not None
    assert result.plan.movement is not None
    assert result.plan.movement.previous_issue.startswith('table "t0" in the checkpoint')
    assert result.plan.movement.moved_bytes > 0
    assert_loadable(problem, result.plan.placement.tables)


def test_a_previous_plan_that_is_the_checkpoints_stays() -> None:
    problem = resumed(num_hosts=2, ranks_per_host=2)
    previous = PreviousPlan(placement=laid_out_on(4, 2, *checkpoint()), min_relative_gain=1.0)
    result = plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS, previous=previous)
    assert result.plan is not None
    assert result.plan.movement is not None
    assert result.plan.movement.moved_bytes == 0
    assert [one.shards for one in result.plan.placement.tables] == [one.shards for one in checkpoint()]


def test_without_a_way_the_checkpoint_is_named() -> None:
    """A cut that must stay needs more memory than a whole table would not."""
    problem = resumed(num_hosts=1, ranks_per_host=2)
    allowed = TableConstraints(sharding_types=frozenset({Scheme.DATA_PARALLEL}))
    narrowed = replace(problem, tables=(replace(problem.tables[0], constraints=allowed), *problem.tables[1:]))
    result = plan(narrowed, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS)
    assert result.plan is None
    assert result.reason is Reason.INFEASIBLE
    assert result.diagnosis is not None
    pointers = {change.pointer for fix in result.diagnosis.fixes for change in fix.changes}
    assert pointers & {"/checkpoint_plan", "/model/tables/0/constraints/sharding_types"}


def test_moves_leave_widths_alone_at_any_temperature() -> None:
    """Thousands of proposals, all moves among them, none turned down: pieces go elsewhere, and none is recut."""
    listed = list_and_price(resumed(num_hosts=2, ranks_per_host=2), ROOFLINE)
    assert not isinstance(listed, Infeasibility)
    view = search_view(listed[1])
    found = Greedy().solve(listed[1], LIMITS).assignment
    assert found is not None
    chain = Chain(view, 0)
    assert chain.load(found)
    arrays = chain._arrays  # noqa: SLF001
    before, given = arrays.slot_site.copy(), view.data.item_cut_fixed
    rates = dict.fromkeys(("pair", "three_rank", "ejection", "replacement"), 0.05)
    mix = cumulative_mix(ProposalRates(**rates, homing=0.0, after_cuts=0.05, on_hosts=0.3, cuts=True))
    assert np.count_nonzero(given) == 3
    recut = 0
    for _ in range(20):
        anneal(chain._data, chain._state, 500, 1e9, 20.0, 1.0, mix, np.inf)  # noqa: SLF001
        for item, is_given in enumerate(given.tolist()):
            first, count = int(view.data.item_slot[item]), int(arrays.num_pieces[item])
            columns = view.data.shape_columns[arrays.slot_shape[first : first + count]].tolist()
            assert not is_given or sorted(columns) == sorted(WIDTHS)
            recut += not is_given and len(columns) > 1
    slots = np.isin(view.data.slot_item, np.flatnonzero(given))
    assert np.any(arrays.slot_site[slots] != before[slots])
    assert recut > 20


def test_a_plan_in_pieces_of_another_order_is_none_of_the_given() -> None:
    """Three pieces of legal widths, and not those of the checkpoint: a search may not begin there."""
    problem = resumed(num_hosts=2, ranks_per_host=2)
    families = [one for one in enumerate_families(problem).families if one.table == 0]
    for widths, is_given in ((WIDTHS, True), (WIDTHS[::-1], False), ((64, 64, 128), False)):
        placed = laid_out(tables()[0], Scheme.COLUMN_WISE, widths=widths)
        found = [pieces_of(problem, one, placed) for one in families if one.scheme is Scheme.COLUMN_WISE]
        assert [pieces is not None for pieces in found] == [is_given] * len(found)


def test_explanations_say_that_a_cut_is_the_checkpoints() -> None:
    problem = resumed(num_hosts=2, ranks_per_host=2)
    result = plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS)
    assert result.plan is not None
    explained = explain(problem, result.plan.placement, ROOFLINE, max_tables=12)
    given = {
        one.name for one in explained.tables if "(160 + 64 + 32)" in one.reason and "as in the checkpoint" in one.reason
    }
    assert given == {"t0", "t4", "t8"}
