"""The plans that TorchRec accepts and trains silently wrong are refused, one test each."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.verification.verify import verify
from tests.support.planning.builders import SSD, make_cluster, make_problem, make_table

Rectangle = tuple[int, int, int, int, int]  # rank, row offset, rows, column offset, columns


def place(name: str, scheme: Scheme, rectangles: list[Rectangle], kernel: Kernel = Kernel.FUSED) -> TablePlacement:
    tier = kernel.tier(Tier.HBM)
    shards = Shards.of(
        Shard(rank=r, row_offset=ro, num_rows=nr, column_offset=co, num_columns=nc, tier=tier)
        for r, ro, nr, co, nc in rectangles
    )
    return TablePlacement(name=name, sharding_type=scheme, compute_kernel=kernel, shards=shards)


def codes(problem: Problem, *tables: TablePlacement) -> set[str]:
    cluster = problem.cluster
    placement = Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=tables)
    return {issue.code for issue in verify(problem, placement)}


ONE_HOST = make_cluster(1, 4)
WITH_STORAGE = make_cluster(1, 4, **SSD)
ANY_KERNEL = TableConstraints(compute_kernels=frozenset(Kernel))
TWO_HOSTS = make_cluster(2, 2)


def by_rows(sizes: list[int], columns: int = 64) -> list[Rectangle]:
    return [(rank, sum(sizes[:rank]), size, 0, columns) for rank, size in enumerate(sizes)]


def test_rule_1_uneven_row_blocks() -> None:
    problem = make_problem(make_table(rows=777), cluster=ONE_HOST)
    assert codes(problem, place("t", Scheme.ROW_WISE, by_rows([195, 195, 195, 192]))) == set()
    assert codes(problem, place("t", Scheme.ROW_WISE, by_rows([195, 194, 194, 194]))) == {"geometry"}
    assert codes(problem, place("t", Scheme.TABLE_ROW_WISE, by_rows([192, 195, 195, 195]))) == {"geometry"}


def test_rule_2_mean_pools_cut_by_rows_next_to_other_schemes() -> None:
    tables = [make_table(name, rows=400, pooling=pooling) for name, pooling in (("m", "mean"), ("s", "sum"))]
    mean = place("m", Scheme.ROW_WISE, by_rows([100] * 4))
    rows, whole = place("s", Scheme.ROW_WISE, by_rows([100] * 4)), place("s", Scheme.TABLE_WISE, [(0, 0, 400, 0, 64)])
    assert codes(make_problem(*tables, cluster=ONE_HOST), mean, rows) == set()
    assert codes(make_problem(*tables, cluster=ONE_HOST), mean, whole) == {"mean-rows-mixed"}
    apart = [make_table("m", rows=400, pooling="mean", module_path="a"), make_table("s", rows=400, module_path="b")]
    assert codes(make_problem(*apart, cluster=ONE_HOST), mean, whole) == set()


def test_rule_3_grid_of_a_mean_table() -> None:
    grid: list[Rectangle] = [(r, 500 * (r % 2), 500, 64 * (r // 2), 64) for r in range(4)]
    sums, means = (make_table(dim=128, pooling=pooling) for pooling in ("sum", "mean"))
    assert codes(make_problem(sums, cluster=TWO_HOSTS), place("t", Scheme.GRID_SHARD, grid)) == set()
    assert codes(make_problem(means, cluster=TWO_HOSTS), place("t", Scheme.GRID_SHARD, grid)) == {"mean-grid"}


def test_rule_4_a_shard_without_rows() -> None:
    problem = make_problem(make_table(rows=3), cluster=ONE_HOST)
    assert "shard-out-of-range" in codes(problem, place("t", Scheme.ROW_WISE, by_rows([1, 1, 1, 0])))


@pytest.mark.parametrize(
    ("scheme", "kernel", "rectangles", "code"),
    [
        (Scheme.DATA_PARALLEL, Kernel.FUSED, [(r, 0, 1000, 0, 128) for r in range(4)], "kernel"),
        (Scheme.COLUMN_WISE, Kernel.DENSE, [(0, 0, 1000, 0, 64), (1, 0, 1000, 64, 64)], "kernel"),
        (Scheme.COLUMN_WISE, Kernel.FUSED, [(0, 0, 1000, 0, 66), (1, 0, 1000, 66, 62)], "column-width"),
        (Scheme.COLUMN_WISE, Kernel.FUSED, [(0, 0, 1000, 64, 64), (1, 0, 1000, 0, 64)], "geometry"),
        (Scheme.TABLE_WISE, Kernel.FUSED, [(0, 0, 500, 0, 128), (1, 500, 500, 0, 128)], "geometry"),
        (Scheme.ROW_WISE, Kernel.FUSED, [((r + 1) % 4, 250 * r, 250, 0, 128) for r in range(4)], "geometry"),
        (Scheme.TABLE_ROW_WISE, Kernel.FUSED, [(1, 0, 500, 0, 128), (2, 500, 500, 0, 128)], "geometry"),
        (Scheme.TABLE_COLUMN_WISE, Kernel.FUSED, [(1, 0, 1000, 0, 64), (2, 0, 1000, 64, 64)], "geometry"),
        (Scheme.GRID_SHARD, Kernel.FUSED, [(0, 0, 1000, 0, 64), (2, 0, 1000, 64, 64)], "geometry"),
        (
            Scheme.GRID_SHARD,
            Kernel.FUSED,
            [(0, 0, 500, 0, 64), (1, 0, 500, 64, 64), (2, 500, 500, 0, 64), (3, 500, 500, 64, 64)],
            "geometry",
        ),
    ],
)
def test_geometry_that_torchrec_would_not_run(
    scheme: Scheme, kernel: Kernel, rectangles: list[Rectangle], code: str
) -> None:
    problem = make_problem(make_table(dim=128), cluster=TWO_HOSTS)
    assert code in codes(problem, place("t", scheme, rectangles, kernel))


def test_sequence_tables() -> None:
    problem = make_problem(make_table(rows=400, pooling="none"), cluster=ONE_HOST)
    assert codes(problem, place("t", Scheme.ROW_WISE, by_rows([100] * 4))) == set()
    assert codes(problem, place("t", Scheme.TABLE_ROW_WISE, by_rows([100] * 4))) == {"sequence-scheme"}


@pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE])
@pytest.mark.parametrize("share", [None, 0.0, -0.1, 1.1])
def test_a_cache_needs_a_share_of_the_rows(kernel: Kernel, share: float | None) -> None:
    problem = make_problem(make_table(optimizer="rowwise_adagrad", constraints=ANY_KERNEL), cluster=WITH_STORAGE)
    cached = place("t", Scheme.TABLE_WISE, [(0, 0, 1000, 0, 64)], kernel)
    assert "cache" in codes(problem, replace(cached, cache_load_factor=share))
    assert codes(problem, replace(cached, cache_load_factor=0.2)) == set()
    more = set() if kernel is Kernel.FUSED_UVM_CACHING else {"cache-share"}  # TorchRec has no more for rows on SSD
    assert codes(problem, replace(cached, cache_load_factor=1.0)) == more


def test_kernels_that_read_host_memory_have_no_cache() -> None:
    problem = make_problem(make_table(constraints=ANY_KERNEL), cluster=ONE_HOST)
    uncached = place("t", Scheme.TABLE_WISE, [(0, 0, 1000, 0, 64)], Kernel.FUSED_UVM)
    assert codes(problem, uncached) == set()
    assert codes(problem, replace(uncached, cache_load_factor=0.3)) == {"cache"}


@pytest.mark.parametrize(("optimizer", "issues"), [("rowwise_adagrad", set()), ("none", set()), ("adam", {"kernel"})])
def test_block_storage_trains_with_few_optimizers(optimizer: str, issues: set[str]) -> None:
    problem = make_problem(make_table(optimizer=optimizer, constraints=ANY_KERNEL), cluster=WITH_STORAGE)
    stored = place("t", Scheme.TABLE_WISE, [(0, 0, 1000, 0, 64)], Kernel.KEY_VALUE)
    assert codes(problem, replace(stored, cache_load_factor=0.2)) == issues


@pytest.mark.parametrize(
    ("scheme", "kernel"), [(Scheme.TABLE_WISE, Kernel.FUSED), (Scheme.DATA_PARALLEL, Kernel.DENSE)]
)
def test_no_table_trains_with_an_optimizer_that_torchrec_cannot_build(scheme: Scheme, kernel: Kernel) -> None:
    problem = make_problem(make_table(optimizer="lars_sgd"), cluster=ONE_HOST)
    shards = [(rank, 0, 1000, 0, 64) for rank in (range(4) if scheme is Scheme.DATA_PARALLEL else (0,))]
    assert codes(problem, place("t", scheme, shards, kernel)) == {"optimizer"}


@pytest.mark.parametrize("scheme", [Scheme.TABLE_COLUMN_WISE, Scheme.GRID_SHARD])
def test_block_storage_runs_the_schemes_that_torchrec_builds_it_for(scheme: Scheme) -> None:
    """Two column pieces on one host of four: whole, or cut by rows over it."""
    problem = make_problem(make_table(optimizer="rowwise_adagrad", constraints=ANY_KERNEL), cluster=WITH_STORAGE)
    rows = [(0, 1000)] if scheme is Scheme.TABLE_COLUMN_WISE else [(250 * i, 250) for i in range(4)]
    pieces: list[Rectangle] = [(i, at, num, 32 * half, 32) for half in (0, 1) for i, (at, num) in enumerate(rows)]
    stored = replace(place("t", scheme, pieces, Kernel.KEY_VALUE), cache_load_factor=0.3)
    assert codes(problem, stored) == {"kernel"}
    cached = replace(place("t", scheme, pieces, Kernel.FUSED_UVM_CACHING), cache_load_factor=0.3)
    assert codes(problem, cached) == set()


def test_a_cache_share_needs_a_cache() -> None:
    problem = make_problem(make_table(), cluster=ONE_HOST)
    whole = place("t", Scheme.TABLE_WISE, [(0, 0, 1000, 0, 64)])
    assert codes(problem, replace(whole, cache_load_factor=0.3)) == {"cache"}


def test_shards_wider_than_kernels_read_right() -> None:
    problem = make_problem(make_table(dim=2048), cluster=ONE_HOST)
    halves: list[Rectangle] = [(0, 0, 1000, 0, 1024), (1, 0, 1000, 1024, 1024)]
    assert codes(problem, place("t", Scheme.TABLE_WISE, [(0, 0, 1000, 0, 2048)])) == {"column-width"}
    assert codes(problem, place("t", Scheme.COLUMN_WISE, halves)) == set()
