"""Memory that is left is used for nearer rows, and nothing gets worse."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Phase, Scheme, Tier
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.orchestration.refine.faster_tier import move_rows_to_faster_tier
from planner.pricing.price_options import price
from planner.solver.evaluate import objective_of, rank_loads, violations
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Assignment, SolverProblem
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table


def hidden_problem(hbm_bytes: float = 1e9) -> Problem:
    """Caches are filled under a dense part that hides everything: the search does not care how large they are."""
    kernels = frozenset({Kernel.FUSED, Kernel.FUSED_UVM_CACHING})
    wanted = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}), compute_kernels=kernels)
    tables = [
        make_table(f"t{i}", 100_000, 64, optimizer="rowwise_adagrad", access=ZipfAccess(alpha=1.0), constraints=wanted)
        for i in range(4)
    ]
    dense = Dense(forward_seconds=1.0, backward_seconds=1.0)
    cluster = make_cluster(1, 2, hbm_bytes=hbm_bytes)
    return make_problem(*tables, cluster=cluster, dense=dense, pipeline="train_prefetch_sparse_dist")


def smallest_caches(priced: SolverProblem, place: int = 0) -> Assignment:
    """Every table behind its smallest cache, or one of the next in size, two on each rank."""
    shapes = [
        int(mine[np.argsort(priced.shape_bytes[mine, Tier.HBM])[place]])
        for mine in (np.flatnonzero(priced.shape_table == table) for table in range(priced.num_tables))
    ]
    return Assignment(piece_shape=np.array(shapes), piece_site=np.array([0, 0, 1, 1]))


def test_where_all_rows_fit_none_stays_far() -> None:
    problem = hidden_problem()
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    before = smallest_caches(priced)
    after = move_rows_to_faster_tier(priced, before)
    assert rank_loads(priced, before).bytes[:, Tier.DDR].min() > 0
    assert rank_loads(priced, after).bytes[:, Tier.DDR].max() == 0
    assert objective_of(priced, after) <= objective_of(priced, before)


def test_what_fits_in_part_is_used_in_part() -> None:
    """Two tables of 25.6 MB on a rank with 40 MB, some of it for buffers: not both, and more than nothing."""
    problem = hidden_problem(40e6)
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    before = smallest_caches(priced)
    after = move_rows_to_faster_tier(priced, before)
    assert violations(priced, after) == []
    near, far = (rank_loads(priced, one) for one in (after, before))
    assert np.all(near.seconds <= far.seconds)
    assert near.seconds[:, Phase.PREFETCH].sum() < 0.5 * far.seconds[:, Phase.PREFETCH].sum()
    assert near.bytes[:, Tier.DDR].min() > 0
    np.testing.assert_array_equal(move_rows_to_faster_tier(priced, after).piece_shape, after.piece_shape)


def test_one_tier_leaves_nothing_to_do() -> None:
    problem = hidden_problem()
    fused = TableConstraints(compute_kernels=frozenset({Kernel.FUSED}))
    problem = replace(problem, tables=tuple(replace(table, constraints=fused) for table in problem.tables))
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    found = Greedy().solve(priced, SolveLimits(time_limit_seconds=1.0)).assignment
    assert found is not None
    assert move_rows_to_faster_tier(priced, found) is found


@pytest.mark.parametrize("hbm_bytes", [30e6, 60e6, 1e9])
def test_pinned_tables_stay(hbm_bytes: float) -> None:
    problem = hidden_problem(hbm_bytes)
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    before = smallest_caches(priced)
    pinned = replace(priced, pinned_shape=before.piece_shape[:1].copy(), pinned_site=before.piece_site[:1].copy())
    assert move_rows_to_faster_tier(pinned, before).piece_shape[0] == before.piece_shape[0]


@pytest.mark.parametrize("place", [0, 1])
def test_nothing_comes_nearer_that_is_slower_in_any_phase(place: int) -> None:
    """All rows near would save the fetches, and take longer to look up, maybe on the slowest rank of that phase."""
    problem = hidden_problem()
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    seconds = priced.shape_seconds.copy()
    seconds[priced.shape_bytes[:, Tier.DDR] == 0, Phase.FORWARD_COMPUTE] += 1e-9
    slower = replace(priced, shape_seconds=seconds)
    after = move_rows_to_faster_tier(slower, smallest_caches(slower, place))
    assert np.all(rank_loads(slower, after).bytes[:, Tier.DDR] > 0)
    assert np.all(slower.shape_bytes[after.piece_shape, Tier.HBM] > slower.shape_bytes[:, Tier.HBM].min())
