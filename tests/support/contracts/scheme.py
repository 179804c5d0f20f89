"""What every scheme promises; each one's test class inherits this and states its facts.

What a cut becomes on the ranks is checked cell by cell, and by :mod:`planner.verification.verify`, which
shares no code with the geometry of schemes. Listed cuts are tried, and cuts as unequal as they can be.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from cost_models.vocabulary import Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import DEFAULT_MIN_PARTITION, Geometry, Piece, geometry
from planner.options.schemes.widths import piece_widths
from planner.solver.problem import Scope
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.thorough import THOROUGH, thorough

#: Hosts x ranks per host: alone, one host, hosts of one rank, several hosts, three of a kind; pods of some ranks.
CLUSTERS = (
    *(make_cluster(*shape) for shape in ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 3), (4, 1, 2), (2, 2, 4))),
    *(pytest.param(make_cluster(*shape), marks=thorough) for shape in ((3, 2), (2, 4), (4, 2, 4), (6, 1, 3))),
)


def shape_of(cluster: Cluster) -> str:
    """What a cluster is called in the names of tests."""
    pods = "" if cluster.pod_size is None else f"-pods-of-{cluster.pod_size}"
    return f"{cluster.num_hosts}x{cluster.ranks_per_host}{pods}"


#: Around the numbers of ranks: too few rows, just enough, one too many, uneven, even.
ROWS = (1, 2, 3, 5, 6, 8, 9, 61)
#: No multiple of 4; narrower than any piece; around 2 x 32 columns; widths that do not divide.
COLUMNS = (4, 62, 64, 100, 256)
MIN_PARTITIONS = (None, 12)
#: Of the cuts of the grid every so many is placed; coprime to the numbers of rows and columns, so that all take part.
CUT_STEP = 1 if THOROUGH else 7


def one(_: Cluster) -> int:
    """A dimension that is not cut."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedScheme:
    """The facts of a scheme, stated without its own code."""

    scheme: Scheme
    scope: Scope  # of every piece
    row_blocks: Callable[[Cluster], int] = one  # ranks that share the rows of a piece
    most_pieces: Callable[[Cluster], int] = one  # column pieces that a table is cut into at most
    cuts_columns: bool = False
    same_host: bool = False
    replicated: bool = False
    runtime: str = "torchrec"  # one that has the scheme

    @property
    def cuts_rows(self) -> bool:
        """Whether rows are spread over ranks."""
        return self.row_blocks is not one


class SchemeContract:
    """Cuts tile the table, become one exact cover wherever they are placed, and nothing else is offered."""

    expected: ExpectedScheme

    @pytest.mark.parametrize("cluster", CLUSTERS, ids=shape_of)
    def test_geometry_is_given_exactly_where_it_fits(self, cluster: Cluster) -> None:
        expected = self.expected
        want = Geometry(
            scope=expected.scope,
            replicated=expected.replicated,
            same_host=expected.same_host,
            min_pieces=2 if expected.cuts_columns else 1,
            max_pieces=expected.most_pieces(cluster),
        )
        for table in tables():
            found = geometry(expected.scheme, table, cluster)
            assert found == (want if self.rows_fit(table, cluster) else None)

    @pytest.mark.parametrize("cluster", CLUSTERS, ids=shape_of)
    def test_every_site_touches_the_ranks_of_its_scope(self, cluster: Cluster) -> None:
        world, local = cluster.world_size, cluster.ranks_per_group
        ranks_of_site = {
            Scope.RANK: [[rank] for rank in range(world)],
            Scope.HOST: [list(range(group * local, (group + 1) * local)) for group in range(cluster.num_groups)],
            Scope.WORLD: [list(range(world))],
        }[self.expected.scope]
        for table, pieces in self.all_cuts(cluster):
            for piece, (site, ranks) in itertools.product(pieces, enumerate(ranks_of_site)):
                shards = expand(table, piece, site, cluster, cluster.device_tier)
                assert [shard.rank for shard in shards] == ranks
                assert {shard.tier for shard in shards} == {cluster.device_tier}
                if self.expected.replicated:
                    assert {shard.num_rows for shard in shards} == {table.num_embeddings}
                else:
                    assert len(shards) == self.expected.row_blocks(cluster)

    @pytest.mark.parametrize("cluster", CLUSTERS, ids=shape_of)
    def test_every_cell_is_held_once_wherever_the_pieces_go(self, cluster: Cluster) -> None:
        for table, pieces in self.all_cuts(cluster):
            for shards in self.placements(table, pieces, cluster):
                held = np.zeros((cluster.world_size, table.num_embeddings, table.embedding_dim), dtype=np.int8)
                for shard in shards:
                    rows = slice(shard.row_offset, shard.row_offset + shard.num_rows)
                    held[shard.rank, rows, shard.column_offset : shard.column_offset + shard.num_columns] += 1
                assert np.all((held if self.expected.replicated else held.sum(axis=0)) == 1)

    @pytest.mark.parametrize("cluster", CLUSTERS, ids=shape_of)
    def test_what_is_offered_may_be_trained(self, cluster: Cluster) -> None:
        """Except tables that the runtime rejects whatever their cut (in TorchRec: 62 columns)."""
        num_verified = 0
        for table, pieces in self.all_cuts(cluster):
            problem = make_problem(table, cluster=cluster, runtime=self.expected.runtime)
            runtime = RUNTIMES[problem.runtime]
            if runtime.scheme_issue_on(cluster, table, self.expected.scheme) is not None:
                continue
            for shards in self.placements(table, pieces, cluster):
                placed = TablePlacement(
                    name=table.name,
                    sharding_type=self.expected.scheme,
                    compute_kernel=runtime.kernels(table, self.expected.scheme, problem.kernels)[0],
                    shards=shards,
                )
                placement = Placement(
                    world_size=cluster.world_size,
                    ranks_per_host=cluster.ranks_per_host,
                    pod_size=cluster.pod_size,
                    tables=(placed,),
                )
                assert verify(problem, placement) == ()
                num_verified += 1
        fits_anywhere = any(self.rows_fit(table, cluster) for table in tables())
        can_cut = not self.expected.cuts_columns or self.expected.most_pieces(cluster) > 1
        assert (num_verified > 0) is (fits_anywhere and can_cut)

    def all_cuts(self, cluster: Cluster) -> Iterator[tuple[Table, tuple[Piece, ...]]]:
        """Cuts of tables of the grid that the scheme's geometry allows."""
        return itertools.islice(self.every_cut(cluster), 0, None, CUT_STEP)

    def every_cut(self, cluster: Cluster) -> Iterator[tuple[Table, tuple[Piece, ...]]]:
        """Cuts of every table of the grid that the scheme's geometry allows."""
        for table in tables():
            found = geometry(self.expected.scheme, table, cluster)
            if found is None:
                continue
            whole = [[table.embedding_dim]]
            for widths in list(column_cuts(table, found.max_pieces)) if self.expected.cuts_columns else whole:
                offsets = itertools.accumulate(widths[:-1], initial=0)
                yield (
                    table,
                    tuple(
                        Piece(
                            scope=found.scope,
                            column_offset=offset,
                            num_columns=width,
                            replicated=found.replicated,
                        )
                        for offset, width in zip(offsets, widths, strict=True)
                    ),
                )

    def placements(self, table: Table, pieces: tuple[Piece, ...], cluster: Cluster) -> Iterator[Shards]:
        """Shards with all pieces on one site, the first or the last, and with pieces dealt out in turn."""
        num_sites = {Scope.RANK: cluster.world_size, Scope.HOST: cluster.num_groups, Scope.WORLD: 1}[
            self.expected.scope
        ]
        choices = [[site] * len(pieces) for site in sorted({0, num_sites - 1})]
        if not self.expected.same_host:
            choices.append([(num_sites - 1 - i) % num_sites for i in range(len(pieces))])
        else:  # dealt out inside each host, or pod
            local = cluster.ranks_per_group
            choices += [[group * local + i % local for i in range(len(pieces))] for group in range(cluster.num_groups)]
        for sites in choices:
            yield Shards.joined(
                expand(table, piece, site, cluster, cluster.device_tier)
                for piece, site in zip(pieces, sites, strict=True)
            )

    def rows_fit(self, table: Table, cluster: Cluster) -> bool:
        """Whether equal row blocks leave no rank without rows; one rank has nothing to share them with."""
        if not self.expected.cuts_rows:
            return True
        ranks = self.expected.row_blocks(cluster)
        block = -(-table.num_embeddings // ranks)
        return ranks > 1 and all(table.num_embeddings > rank * block for rank in range(ranks))


def tables() -> Iterator[Table]:
    """The grid of tables."""
    for rows, columns, least in itertools.product(ROWS, COLUMNS, MIN_PARTITIONS):
        yield make_table(rows=rows, dim=columns, constraints=TableConstraints(min_partition=least))


def column_cuts(table: Table, most: int) -> Iterator[list[int]]:
    """Listed cuts, and one wide piece next to the narrowest there are: one of them, and as many as may be."""
    least = table.constraints.min_partition or DEFAULT_MIN_PARTITION
    found = piece_widths(table.embedding_dim, least, table.embedding_dim, most)
    if found is None:
        return
    yield from (found.columns[cut].tolist() for cut in found.cuts)
    for count in sorted({2, found.max_pieces}):
        yield [least] * (count - 1) + [table.embedding_dim - (count - 1) * least]
