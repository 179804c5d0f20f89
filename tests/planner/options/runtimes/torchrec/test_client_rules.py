"""The planner and the launcher's client each have TorchRec's rules, and reject the same plans (decision 0048)."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from api.client.model_check import plan_differences
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece, geometry
from planner.verification.verify import verify
from tests.support.client.jobs import live_table
from tests.support.planning.builders import SSD, make_cluster, make_problem, make_table
from tests.support.thorough import thorough

Rectangle = tuple[int, int, int, int, int]  # rank, row offset, rows, column offset, columns
Change = Callable[[list[Rectangle]], list[Rectangle]]

ROWS, COLUMNS = 10, 16
CLUSTERS = {(hosts, local): make_cluster(hosts, local, **SSD) for hosts, local in ((1, 1), (1, 4), (2, 2))}
ANY_KERNEL = TableConstraints(compute_kernels=frozenset(Kernel))


def table(name: str = "t", **facts: object) -> Table:
    """A table of any kernel, small enough for any rank."""
    return make_table(name, **({"rows": ROWS, "dim": COLUMNS, "constraints": ANY_KERNEL} | facts))


def right_shards(scheme: Scheme, cluster: tuple[int, int]) -> list[Rectangle]:
    """The shards of a table that TorchRec trains right, from the planner's options; none if the scheme does not fit."""
    cut = geometry(scheme, table(), CLUSTERS[cluster])
    if cut is None or cut.max_pieces < cut.min_pieces:
        return []
    width = COLUMNS // cut.min_pieces
    shards = []
    for number in range(cut.min_pieces):
        piece = Piece(scope=cut.scope, column_offset=number * width, num_columns=width, replicated=cut.replicated)
        site = number if scheme.facts.cuts_columns and CLUSTERS[cluster].num_hosts > number else 0
        shards += [
            (s.rank, s.row_offset, s.num_rows, s.column_offset, s.num_columns)
            for s in expand(table(), piece, site, CLUSTERS[cluster], Tier.HBM)
        ]
    return shards


def of_first(**changes: int) -> Change:
    """Return a change of the first shard by so much."""
    steps = [changes.get(name, 0) for name in ("rank", "row_offset", "num_rows", "column_offset", "num_columns")]
    return lambda shards: [tuple(map(sum, zip(shards[0], steps, strict=True))), *shards[1:]]  # type: ignore[list-item]


def border(axis: int, step: int) -> Change:
    """Return a change that moves the end of the first shard, with all that begins there."""

    def moved(shards: list[Rectangle]) -> list[Rectangle]:
        end = shards[0][axis] + shards[0][axis + 1]
        changed = []
        for shard in shards:
            one = list(shard)
            if one[axis] == end:
                one[axis], one[axis + 1] = one[axis] + step, one[axis + 1] - step
            elif one[axis] + one[axis + 1] == end:
                one[axis + 1] += step
            changed.append(tuple(one))
        return changed  # type: ignore[return-value]

    return moved


CHANGES: dict[str, Change] = {
    "none": lambda shards: shards,
    "reversed": lambda shards: shards[::-1],
    "first two exchange ranks": lambda shards: [
        (shards[1][0], *shards[0][1:]),
        (shards[0][0], *shards[1][1:]),
        *shards[2:],
    ],
    "last is missing": lambda shards: shards[:-1],
    "last stands twice": lambda shards: [*shards, shards[-1]],
    "all on rank 0": lambda shards: [(0, *shard[1:]) for shard in shards],
    "all one rank further": lambda shards: [(shard[0] + 1, *shard[1:]) for shard in shards],
    "first one rank further": of_first(rank=1),
    "rank 99": of_first(rank=99),
    "first starts later": of_first(row_offset=1),
    "first has a row less": of_first(num_rows=-1),
    "first has no rows": of_first(num_rows=-ROWS),
    "first has 4 columns less": of_first(num_columns=-4),
    "row border one up": border(1, -1),
    "row border one down": border(1, 1),
    "column border 4 left": border(3, -4),
    "column border 2 left": border(3, -2),
}


def placed(
    name: str, scheme: Scheme, shards: list[Rectangle], kernel: Kernel, cached_share: float = 0.2
) -> TablePlacement:
    return TablePlacement(
        name=name,
        sharding_type=scheme,
        compute_kernel=kernel,
        cache_load_factor=cached_share if kernel.facts.is_cached else None,
        shards=Shards.of(
            Shard(rank=r, row_offset=ro, num_rows=nr, column_offset=co, num_columns=nc, tier=kernel.tier(Tier.HBM))
            for r, ro, nr, co, nc in shards
        ),
    )


def planner_rejects(problem: Problem, *tables: TablePlacement) -> bool:
    cluster = problem.cluster
    placement = Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=tables)
    return bool(verify(problem, placement))


def client_rejects(problem: Problem, *tables: TablePlacement) -> bool:
    digest, cluster = "sha256:" + "0" * 64, problem.cluster
    document = {
        "plan_digest": digest,
        "world_size": cluster.world_size,
        "ranks_per_host": cluster.ranks_per_host,
        "tables": [
            {
                "name": one.name,
                "sharding_type": one.sharding_type.label,
                "compute_kernel": one.compute_kernel.label,
                "cache_load_factor": one.cache_load_factor,
                "shards": [
                    {
                        "rank": shard.rank,
                        "row_offset": shard.row_offset,
                        "num_rows": shard.num_rows,
                        "column_offset": shard.column_offset,
                        "num_columns": shard.num_columns,
                    }
                    for shard in one.shards
                ],
            }
            for one in tables
        ],
    }
    live = [
        live_table(
            t.name,
            num_embeddings=t.num_embeddings,
            embedding_dim=t.embedding_dim,
            data_type=t.data_type.name,
            pooling=t.pooling,
        )
        for t in problem.tables
    ]
    world = {"world_size": cluster.world_size, "ranks_per_host": cluster.ranks_per_host}
    return bool(plan_differences(document, live, digest=digest, device="cuda", **world))


def changed_shards() -> Iterator[tuple[str, tuple[int, int], list[Rectangle]]]:
    """Shards that are right for some scheme, changed in some way or not at all."""
    for scheme, cluster, (name, change) in product(Scheme, CLUSTERS, CHANGES.items()):
        shards = right_shards(scheme, cluster)
        if len(shards) > 1 or (shards and name != "first two exchange ranks"):
            changed = change(shards)
            if changed and all(number >= 0 for shard in changed for number in shard):
                yield f"{scheme.label}, {name}", cluster, changed


@thorough
@pytest.mark.parametrize("pooling", ["sum", "mean", "none"])
@pytest.mark.parametrize("scheme", Scheme)
def test_both_reject_the_same_shards_of_a_scheme(scheme: Scheme, pooling: str) -> None:
    """Right shards of every scheme, and changed ones, under the name of each scheme."""
    kernel = Kernel.DENSE if scheme.is_replicated else Kernel.FUSED
    verdicts = []
    for name, cluster, shards in changed_shards():
        problem = make_problem(table(pooling=pooling), cluster=CLUSTERS[cluster])
        one = placed("t", scheme, shards, kernel)
        verdict = planner_rejects(problem, one)
        assert client_rejects(problem, one) is verdict, f"{name} on {cluster}"
        verdicts.append(verdict)
    assert any(verdicts)
    assert all(verdicts) is (RUNTIMES["torchrec"].scheme_issue(table(pooling=pooling), scheme) is not None)


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize("kernel", Kernel)
def test_both_reject_the_same_kernels_types_and_cached_shares(scheme: Scheme, kernel: Kernel) -> None:
    quantised = [(name, 0.2) for name in ("int8", "int4", "int2")]
    for data_type, cached_share in (("fp32", 0.2), ("fp16", 0.1), ("fp16", 0.25), ("bf16", 0.2), *quantised):
        problem = make_problem(table(data_type=data_type, optimizer="none"), cluster=CLUSTERS[2, 2])
        one = placed("t", scheme, right_shards(scheme, (2, 2)), kernel, cached_share)
        assert client_rejects(problem, one) is planner_rejects(problem, one), (data_type, cached_share)


@pytest.mark.parametrize(("first", "second"), list(product(Scheme, Scheme)))
def test_both_reject_the_same_neighbours_of_means(first: Scheme, second: Scheme) -> None:
    for poolings in product(("sum", "mean"), repeat=2):
        names = ("a", "b")
        tables = [table(name, pooling=pooling) for name, pooling in zip(names, poolings, strict=True)]
        problem = make_problem(*tables, cluster=CLUSTERS[2, 2])
        two = [
            placed(name, scheme, right_shards(scheme, (2, 2)), Kernel.DENSE if scheme.is_replicated else Kernel.FUSED)
            for name, scheme in zip(names, (first, second), strict=True)
        ]
        assert client_rejects(problem, *two) is planner_rejects(problem, *two), poolings


def test_where_they_differ() -> None:
    """The client leaves widths and optimizers, which come from the model itself, to the planner."""
    cluster = CLUSTERS[1, 1]
    problem = make_problem(table(optimizer="adam"), cluster=cluster)
    one = placed("t", Scheme.TABLE_WISE, [(0, 0, ROWS, 0, COLUMNS)], Kernel.KEY_VALUE)
    assert (planner_rejects(problem, one), client_rejects(problem, one)) == (True, False)
    for width in (18, 2048):
        problem = make_problem(table(dim=width), cluster=cluster)
        one = placed("t", Scheme.TABLE_WISE, [(0, 0, ROWS, 0, width)], Kernel.FUSED)
        assert (planner_rejects(problem, one), client_rejects(problem, one)) == (True, False)
