"""Ids that TorchRec deals out to row blocks: as many reach each rank as the plan says."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Floats, Ints
from cost_models.vocabulary import Scheme
from planner.access.sketches.positions import row_curve
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.access import AccessCdf, IdOrder, RowCdf, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.id_streams import in_batches, sketched

pytestmark = pytest.mark.torchrec

ROWS, IDS = 400_001, 800_000
SCHEMES = (Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD, Scheme.COLUMN_WISE)
HUMPS = ((0.2, 0.05), (0.4, 0.45), (0.6, 0.5), (0.8, 0.9), (1.0, 1.0))
GIVEN = ((0.01, 0.3), (0.1, 0.32), (0.7, 0.9), (1.0, 1.0))


def inverse(points: tuple[tuple[float, float], ...]) -> Callable[[Floats], Ints]:
    """Rows at quantiles of the lookups, from a curve by row number."""
    rows, lookups = np.array([(0.0, 0.0), *points]).T
    return lambda quantile: np.minimum(np.interp(quantile, lookups, rows) * ROWS, ROWS - 1).astype(np.int64)


def zipf(alpha: float) -> Callable[[Floats], Ints]:
    weight = np.arange(1, ROWS + 1) ** -alpha
    return lambda quantile: np.searchsorted(np.cumsum(weight) / weight.sum(), quantile).astype(np.int64)


def hashed(rows: Callable[[Floats], Ints]) -> Callable[[Floats], Ints]:
    numbers = np.random.default_rng(0).permutation(ROWS)
    return lambda quantile: numbers[rows(quantile)]


#: Rows at quantiles, and what a spec says of them.
DISTRIBUTIONS: dict[str, tuple[Callable[[Floats], Ints], IdOrder | RowCdf, AccessCdf | ZipfAccess | None]] = {
    "uniform": (inverse(((1.0, 1.0),)), "unknown", None),
    "hashed": (hashed(zipf(0.4)), "hashed", ZipfAccess(alpha=0.4)),
    "sorted": (zipf(1.05), "frequency_sorted", ZipfAccess(alpha=1.05)),
    "front": (inverse(((0.004, 1.0), (1.0, 1.0))), "frequency_sorted", AccessCdf(points=((0.004, 1.0), (1.0, 1.0)))),
    "humps": (inverse(HUMPS), RowCdf(lookups=HUMPS), None),
    "given": (inverse(GIVEN), RowCdf(lookups=GIVEN), ZipfAccess(alpha=0.8)),
}


def drawn(rows: Callable[[Floats], Ints]) -> Ints:
    """Ids of all quantiles alike, so that no chance is in how many a block gets, in random order."""
    return np.random.default_rng(1).permutation(rows((np.arange(IDS) + 0.5) / IDS))


def placed(
    scheme: Scheme, ids: IdOrder | RowCdf, access: AccessCdf | ZipfAccess | None
) -> tuple[Problem, Placement, Floats]:
    """A table on two hosts of four ranks, whose step makes IDS lookups, and the lookups that its plan promises."""
    cluster = make_cluster(2, 4)
    constraints = TableConstraints(sharding_types=frozenset({scheme}))
    table = make_table(rows=ROWS, dim=64, pooling_factor=IDS / 8 / 64, access=access, constraints=constraints)
    problem = make_problem(replace(table, ids=ids), cluster=cluster)
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=5.0))
    assert result.plan is not None
    promised = np.array([load.lookups for load in result.plan.evaluation.ranks])
    return problem, result.plan.placement, promised


def counted(ids: Ints, table: TablePlacement) -> Floats:
    """Ids that reach every rank: dealt out by TorchRec over the row blocks of each column piece."""
    torch = pytest.importorskip("torch")
    sharding = pytest.importorskip("torchrec.distributed.embedding_sharding")
    sparse = pytest.importorskip("torchrec.sparse.jagged_tensor")
    shards, found = table.shards, np.zeros(8)
    jagged = sparse.KeyedJaggedTensor(
        keys=["f"], values=torch.from_numpy(ids), lengths=torch.full((IDS // 100,), 100, dtype=torch.int64)
    )
    for column in np.unique(shards.column_offset):
        of_piece = np.flatnonzero(shards.column_offset == column)
        blocks = of_piece[np.argsort(shards.row_offset[of_piece])]
        block_sizes = torch.tensor([-(-ROWS // len(blocks))])
        buckets, _ = sharding.bucketize_kjt_before_all2all(jagged, num_buckets=len(blocks), block_sizes=block_sizes)
        lengths = buckets.lengths().view(len(blocks), -1).sum(dim=1).numpy()
        found[shards.rank[blocks]] += lengths
    return found


@pytest.mark.parametrize("scheme", SCHEMES, ids=[scheme.label for scheme in SCHEMES])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_rank_gets_the_ids_that_were_promised(name: str, scheme: Scheme) -> None:
    rows, ids, access = DISTRIBUTIONS[name]
    _, placement, promised = placed(scheme, ids, access)
    (table,) = placement.tables
    assert table.sharding_type is scheme
    np.testing.assert_allclose(promised, counted(drawn(rows), table), rtol=0.01, atol=1e-5 * IDS)


@pytest.mark.parametrize("name", ["sorted", "hashed", "humps", "front"])
def test_statistics_of_the_ids_promise_the_same(name: str) -> None:
    """Also of hashed ids whose hottest row alone makes one block heavier."""
    rows = hashed(zipf(1.05)) if name == "hashed" else DISTRIBUTIONS[name][0]
    ids = drawn(rows)
    sketch = sketched(in_batches(ids, IDS // 10))
    assert sketch.positions is not None
    shares = row_curve(sketch.positions, int(ids.max()), ROWS, 1e-4)
    measured = RowCdf(lookups=tuple(zip(shares[0].tolist(), shares[1].tolist(), strict=True)))
    _, placement, promised = placed(Scheme.ROW_WISE, measured, None)
    np.testing.assert_allclose(promised, counted(ids, placement.tables[0]), rtol=0.01, atol=2e-4 * IDS)
    if name == "hashed":
        assert promised.max() > 1.2 * promised.mean()
