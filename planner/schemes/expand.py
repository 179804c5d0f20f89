"""From a piece and the site it was given to the shards that a runtime is told about."""

from cost_models.vocabulary import Tier
from planner.domain.cluster import Cluster
from planner.domain.placement import Shard
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Piece
from planner.schemes.blocks import block_rows


def expand(table: Table, piece: Piece, site: int, cluster: Cluster, tier: Tier) -> tuple[Shard, ...]:
    """Return the piece's shards, in rank order: the order in which TorchRec wants them."""
    if piece.scope is Scope.RANK:
        return (_shard(table, piece, site, 0, table.num_embeddings, tier),)
    if piece.scope is Scope.HOST:
        ranks = range(site * cluster.ranks_per_host, (site + 1) * cluster.ranks_per_host)
    else:
        ranks = range(cluster.world_size)
    if piece.replicated:
        return tuple(_shard(table, piece, rank, 0, table.num_embeddings, tier) for rank in ranks)
    block = block_rows(table.num_embeddings, len(ranks))
    return tuple(
        _shard(table, piece, rank, i * block, min(block, table.num_embeddings - i * block), tier)
        for i, rank in enumerate(ranks)
    )


def _shard(table: Table, piece: Piece, rank: int, row_offset: int, num_rows: int, tier: Tier) -> Shard:
    if num_rows < 1:
        raise ValueError(f"Expected no empty row block of table {table.name}.")
    return Shard(
        rank=rank,
        row_offset=row_offset,
        num_rows=num_rows,
        column_offset=piece.column_offset,
        num_columns=piece.num_columns,
        tier=tier,
    )
