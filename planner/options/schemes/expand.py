"""From pieces and the sites that they were given to the shards that a runtime reads."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Ints
from cost_models.vocabulary import Tier
from planner.domain.plan.shards import Shards
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.blocks import block_rows
from planner.options.schemes.geometry import Piece
from planner.solver.problem import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class SitedPieces:
    """Pieces of any tables, each on a site; every column of shape (num_pieces,)."""

    table_rows: Ints
    scope: Ints  # Scope codes
    replicated: Bools
    column_offset: Ints
    num_columns: Ints
    site: Ints  # rank, host (or pod), or 0 (WORLD)
    tier: Ints  # Tier codes
    #: first rows that lie in the device's memory as a shard of their own, of pieces on one rank; 0 where there are none
    hot_rows: Ints

    def num_shards(self, cluster: Cluster) -> Ints:
        """Return the number of shards of each piece, shape (num_pieces,)."""
        by_scope = np.ones(len(Scope), dtype=np.int64)
        by_scope[Scope.HOST] = cluster.ranks_per_group
        by_scope[Scope.WORLD] = cluster.world_size
        return by_scope[self.scope] + (self.hot_rows > 0)


def expand_all(pieces: SitedPieces, cluster: Cluster) -> Shards:
    """Return the shards of all pieces, one piece after the other and there in rank order, as TorchRec wants them.

    Of a piece that is split by heat, the hot rows come first.

    Raises
    ------
    ValueError
        A row block would be empty.
    """
    counts = pieces.num_shards(cluster)
    of = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]  # among the shards of the piece
    first_rank = np.where(pieces.scope == Scope.HOST, pieces.site * cluster.ranks_per_group, pieces.site)
    is_split = pieces.hot_rows[of] > 0
    blocks = np.where(pieces.replicated | (pieces.hot_rows > 0), 1, counts)
    block = block_rows(pieces.table_rows, blocks)
    row_offset = np.where(pieces.replicated[of], 0, place * block[of])
    row_offset = np.where(is_split, place * pieces.hot_rows[of], row_offset)
    num_rows = np.minimum(block[of], pieces.table_rows[of] - row_offset)
    num_rows = np.where(is_split & (place == 0), pieces.hot_rows[of], num_rows)
    if np.any(num_rows < 1):
        piece = of[np.argmin(num_rows)]
        rows = f"{pieces.table_rows[piece]} rows over {counts[piece]} ranks"
        raise ValueError(f"Expected no empty row block: {rows}.")
    return Shards.of_columns(
        rank=first_rank[of] + np.where(is_split, 0, place),
        row_offset=row_offset,
        num_rows=num_rows,
        column_offset=pieces.column_offset[of],
        num_columns=pieces.num_columns[of],
        tier=np.where(is_split & (place == 0), int(cluster.device_tier), pieces.tier[of]),
    )


def expand(table: Table, piece: Piece, site: int, cluster: Cluster, tier: Tier) -> Shards:
    """Return the shards of one piece; raises ``ValueError`` where a row block would be empty."""
    pieces = SitedPieces(
        table_rows=np.array([table.num_embeddings]),
        scope=np.array([piece.scope], dtype=np.int64),
        replicated=np.array([piece.replicated]),
        column_offset=np.array([piece.column_offset]),
        num_columns=np.array([piece.num_columns]),
        site=np.array([site]),
        tier=np.array([tier], dtype=np.int64),
        hot_rows=np.zeros(1, dtype=np.int64),
    )
    return expand_all(pieces, cluster)
