"""A table of a placement as pieces of a family: what a plan has, in the terms of the solver problem."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cost_models.arrays import Ints
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families, Family, hot_rows_of
from planner.options.schemes.expand import SitedPieces, expand_all
from planner.solver.problem import Scope

#: Columns and site of each piece, left to right.
Pieces = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What a table's shards say of its column pieces, left to right; every column of shape (num_pieces,)."""

    shards: Shards
    column_offset: Ints
    num_columns: Ints  # of the first shard of each
    least_rank: Ints

    @classmethod
    def of(cls, shards: Shards) -> Self:
        """Shards that begin at the same column are one piece."""
        offsets, first, piece = np.unique(shards.column_offset, return_index=True, return_inverse=True)
        least = np.full(len(offsets), np.iinfo(np.int64).max)
        np.minimum.at(least, piece, shards.rank)
        return cls(shards=shards, column_offset=offsets, num_columns=shards.num_columns[first], least_rank=least)

    def pieces_of(self, problem: Problem, family: Family) -> Pieces | None:
        """Return columns and site of every piece, ``None`` where the shards are not those of the family."""
        cluster, geometry, count = problem.cluster, family.geometry, len(self.column_offset)
        ranks_of_site = {Scope.RANK: 1, Scope.HOST: cluster.ranks_per_group, Scope.WORLD: cluster.world_size}
        ranks = ranks_of_site[geometry.scope]
        hot_rows = hot_rows_of(problem, family)
        num_shards = count * (ranks + (hot_rows > 0))
        if not geometry.min_pieces <= count <= family.widths.max_pieces or num_shards != len(self.shards):
            return None
        table = problem.tables[family.table]
        is_listed = np.any(self.num_columns[:, None] == family.widths.columns, axis=1)
        if not np.all(is_listed) or self.num_columns.sum() != table.embedding_dim:
            return None
        if family.widths.is_fixed and not np.array_equal(
            self.num_columns, family.widths.columns[family.widths.cuts[0]]
        ):
            return None
        if self.least_rank.max() >= cluster.world_size:
            return None
        sites = self.least_rank // ranks
        pieces = SitedPieces(
            table_rows=np.full(count, table.num_embeddings),
            scope=np.full(count, geometry.scope, dtype=np.int64),
            replicated=np.full(count, geometry.replicated),
            column_offset=self.column_offset,
            num_columns=self.num_columns,
            site=sites,
            tier=np.full(count, family.storage.tier(cluster.device_tier), dtype=np.int64),
            hot_rows=np.full(count, hot_rows),
        )
        if not self.shards.are_those_of(expand_all(pieces, cluster), in_any_tier=True):
            return None
        if geometry.same_host and len(np.unique(sites // cluster.ranks_per_group)) > 1:
            return None
        return tuple(zip(self.num_columns.tolist(), sites.tolist(), strict=True))


StorageKey = tuple[Scheme, Kernel, bool, float | None, int, str]


def placed_key(placed: TablePlacement, unknown_type: str) -> StorageKey:
    """Return scheme, kernel, whether in scm, cached share, hot rows and type, ``unknown_type`` if it has none."""
    data_type = placed.data_type or unknown_type
    how = (placed.sharding_type, placed.compute_kernel, placed.in_scm)
    return (*how, placed.cache_load_factor, placed.hot_rows, data_type)


def family_key(problem: Problem, family: Family) -> StorageKey:
    """Return the same of a family."""
    storage, hot_rows = family.storage, hot_rows_of(problem, family)
    how = (family.scheme, storage.kernel, storage.in_scm)
    return (*how, storage.cache_load_factor, hot_rows, storage.data_type.name)


def families_like(problem: Problem, families: Families, placed: Sequence[TablePlacement | None]) -> list[int | None]:
    """Return the family of the same scheme and storage as what is placed of each table; ``None`` where there is none.

    ``placed`` is in the order of the problem's tables, with ``None`` for those that a placement lacks.
    """
    keys = [
        None if one is None else (table, *placed_key(one, unknown_type=problem.tables[table].data_type.name))
        for table, one in enumerate(placed)
    ]
    wanted = set(keys)
    index_of = {
        key: index
        for index, one in enumerate(families.families)
        if (key := (one.table, *family_key(problem, one))) in wanted
    }
    return [None if key is None else index_of.get(key) for key in keys]


def pieces_of(problem: Problem, family: Family, placed: TablePlacement) -> Pieces | None:
    """Return columns and site of every piece, ``None`` where the table's shards are not those of the family."""
    return _Cut.of(placed.shards).pieces_of(problem, family)


def cuts_of(
    problem: Problem, families: Families, mine: Iterable[int], placed: TablePlacement
) -> Iterator[tuple[int, Pieces]]:
    """Yield the families of a table, among ``mine``, that give it its shards; its own scheme and storage come first."""
    cut = _Cut.of(placed.shards)

    def is_other(index: int) -> bool:
        family = families.families[index]
        return family_key(problem, family) != placed_key(placed, unknown_type=family.storage.data_type.name)

    for index in sorted(mine, key=is_other):
        pieces = cut.pieces_of(problem, families.families[index])
        if pieces is not None:
            yield index, pieces
