"""Plans of tables with unequal row blocks: one price in search, bound and score, and what each rank really does."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.access import AccessCdf, IdOrder, RowCdf, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=5.0)
BY_ROWS = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))


def table_of(index: int) -> Table:
    """Tables of every kind of knowledge; some may have caches, and some are sequences."""
    ids: tuple[IdOrder | RowCdf, ...] = (
        "frequency_sorted",
        RowCdf(lookups=((0.5, 0.1), (1.0, 1.0))),  # the last rows are hot
        "hashed",
        RowCdf(lookups=((0.01, 1.0), (1.0, 1.0)), distinct=((0.01, 1.0), (1.0, 1.0))),
    )
    kernels = None if index % 3 else frozenset({Kernel.FUSED_UVM_CACHING})
    schemes = frozenset({Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD} if index % 2 else Scheme)
    return replace(
        make_table(
            f"t{index}",
            rows=10_000 * (1 + index),
            dim=(64, 128)[index % 2],
            pooling="none" if index % 5 == 4 else "sum",
            access=ZipfAccess(alpha=0.9),
            constraints=TableConstraints(sharding_types=schemes, compute_kernels=kernels),
        ),
        ids=ids[index % 4],
    )


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
@pytest.mark.parametrize("partitioner", ["greedy", "local_search"])
def test_searches_and_scores_agree(objective: str, partitioner: str) -> None:
    """A difference of 1e-9, or a bound above the plan, is a defect that ``plan`` raises."""
    problem = make_problem(*map(table_of, range(8)), cluster=make_cluster(2, 2), objective=objective)
    result = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner(partitioner), limits=LIMITS)
    assert result.plan is not None
    lookups = sum(load.lookups or 0.0 for load in result.plan.evaluation.ranks)
    ways = {one.name: len(np.unique(one.shards.column_offset)) for one in result.plan.placement.tables}
    whole = sum(4.0 * 64 * 4 * (ways[table.name] or 1) for table in problem.tables)
    assert lookups == pytest.approx(whole)  # every id is looked up once, in every column piece


def row_wise(ids: IdOrder | RowCdf, **changes: object) -> Problem:
    front = AccessCdf(points=((0.001, 1.0), (1.0, 1.0)))
    return make_problem(replace(make_table(rows=100_000, access=front, constraints=BY_ROWS), ids=ids), **changes)


def seconds(problem: Problem) -> float:
    result = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("greedy"), limits=LIMITS)
    assert result.plan is not None
    return result.plan.evaluation.objective_seconds


def test_ids_at_the_front_make_one_rank_slow() -> None:
    problem = row_wise("frequency_sorted")
    result = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("greedy"), limits=LIMITS)
    assert result.plan is not None
    ranks = result.plan.evaluation.ranks
    assert [load.lookups for load in ranks] == [1024, 0, 0, 0]
    assert [load.id_bytes for load in ranks] == [8 * 1024, 0, 0, 0]
    assert all(load.seconds == ranks[0].seconds for load in ranks)  # all are priced as the heaviest block
    assert seconds(problem) > seconds(row_wise("hashed"))


def test_replicas_receive_no_ids() -> None:
    copies = TableConstraints(sharding_types=frozenset({Scheme.DATA_PARALLEL}))
    problem = make_problem(make_table(constraints=copies))
    result = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("greedy"), limits=LIMITS)
    assert result.plan is not None
    assert [(load.lookups, load.id_bytes) for load in result.plan.evaluation.ranks] == [(256, 0)] * 4


def test_the_buffers_of_ids_are_those_of_the_heaviest_block() -> None:
    bytes_of = {}
    for ids in ("hashed", "frequency_sorted"):
        problem = row_wise(ids)  # type: ignore[arg-type]
        result = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("greedy"), limits=LIMITS)
        assert result.plan is not None
        device = problem.cluster.device_tier
        bytes_of[ids] = [load.ledger_bytes[device]["input_buffers"] for load in result.plan.evaluation.ranks]
    assert bytes_of == {"hashed": [8 * 256] * 4, "frequency_sorted": [8 * 1024] * 4}
