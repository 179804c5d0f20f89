"""A table of a placement as pieces of a family: how the waist would say what a plan has."""

from collections.abc import Iterable, Iterator

import numpy as np

from planner.domain.placement import Shard, TablePlacement
from planner.domain.problem import Problem
from planner.enumerate import Families, Family
from planner.priced import Scope
from planner.schemes.base import Piece
from planner.schemes.expand import expand

#: Columns and site of each piece, left to right.
Pieces = tuple[tuple[int, int], ...]


def pieces_of(problem: Problem, family: Family, placed: TablePlacement) -> Pieces | None:
    """Return columns and site of every piece, ``None`` where the table's shards are not those of the family."""
    shards_of: dict[int, list[Shard]] = {}
    for shard in placed.shards:
        shards_of.setdefault(shard.column_offset, []).append(shard)
    if not family.geometry.min_pieces <= len(shards_of) <= family.widths.max_pieces:
        return None
    cluster, geometry, table = problem.cluster, family.geometry, problem.tables[family.table]
    if sum(shards[0].num_columns for shards in shards_of.values()) != table.embedding_dim:
        return None
    pieces = []
    for offset, shards in sorted(shards_of.items()):
        columns, rank = shards[0].num_columns, min(shard.rank for shard in shards)
        site = {Scope.RANK: rank, Scope.HOST: cluster.host_of(rank), Scope.WORLD: 0}[geometry.scope]
        piece = Piece(scope=geometry.scope, column_offset=offset, num_columns=columns, replicated=geometry.replicated)
        if not np.any(family.widths.columns == columns) or rank >= cluster.world_size:
            return None
        if set(shards) != set(expand(table, piece, site, cluster, cluster.device_tier)):
            return None
        pieces.append((columns, site))
    if geometry.same_host and len({cluster.host_of(site) for _, site in pieces}) > 1:
        return None
    return tuple(pieces)


def cuts_of(
    problem: Problem, families: Families, mine: Iterable[int], placed: TablePlacement
) -> Iterator[tuple[int, Pieces]]:
    """Yield the families of a table, among ``mine``, that give it its shards; its own scheme comes first."""
    named = (placed.sharding_type, placed.compute_kernel)

    def is_other(index: int) -> bool:
        family = families.families[index]
        return (family.scheme, family.kernel) != named

    for index in sorted(mine, key=is_other):
        pieces = pieces_of(problem, families.families[index], placed)
        if pieces is not None:
            yield index, pieces
