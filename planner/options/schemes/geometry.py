"""How each scheme cuts a table on a cluster, from the facts of the scheme (``cost_models.vocabulary.Scheme``).

Only geometry is decided here. Whether a runtime executes a scheme correctly is decided in
:mod:`planner.options.runtimes`.
"""

import functools
from dataclasses import dataclass

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.hash_table import has_whole_buckets
from planner.domain.problem.table import Table
from planner.options.schemes.blocks import has_empty_block
from planner.solver.problem import Scope

#: Narrowest column piece unless a table's ``min_partition`` says otherwise: below 32 fp32
#: columns a row is less than one 128-byte memory transaction (TorchRec's lookup floor too).
DEFAULT_MIN_PARTITION = 32
#: Schemes in the order in which equal options are preferred.
PREFERRED_ORDER = (
    Scheme.TABLE_WISE,
    Scheme.COLUMN_WISE,
    Scheme.ROW_WISE,
    Scheme.TABLE_ROW_WISE,
    Scheme.TABLE_COLUMN_WISE,
    Scheme.GRID_SHARD,
    Scheme.DATA_PARALLEL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A range of columns of a table, placed whole on a site of its scope.

    RANK: one shard of all rows. HOST: row blocks over the ranks of a host, or of a pod where the
    cluster has pods. WORLD: row
    blocks over all ranks, or a full copy on every rank if ``replicated``.
    """

    scope: Scope
    column_offset: int
    num_columns: int
    replicated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """What the pieces of one table look like under one scheme: how many, and where each lands."""

    scope: Scope
    replicated: bool = False
    same_host: bool = False  # whether RANK pieces must land on one host, or in one pod
    min_pieces: int = 1  # column pieces
    max_pieces: int = 1


def geometry(scheme: Scheme, table: Table, cluster: Cluster) -> Geometry | None:
    """Return how a scheme cuts a table; ``None`` if the scheme does not fit its rows or the cluster.

    Row blocks are equal but for the last block, and no block is empty; a single block is that of a hash table alone,
    which runtimes cut by rows also on one rank. Of slots in buckets every block holds as many whole ones. Column pieces
    are two or more: on average a rank holds at most one whole piece of a table, and a host (or pod) at most two pieces
    that are cut by rows.
    """
    if scheme.facts.cuts_rows:
        num_blocks = scheme.row_blocks(cluster.world_size, cluster.ranks_per_group)
        if not _has_blocks(table, num_blocks):
            return None
    return _geometry(scheme, cluster.num_groups, cluster.ranks_per_group)


def _has_blocks(table: Table, num_blocks: int) -> bool:
    """Whether a table can be cut into so many blocks of rows."""
    if table.hash_table is None and num_blocks == 1:
        return False
    if table.hash_table is not None and not has_whole_buckets(table.hash_table, table.num_embeddings, num_blocks):
        return False
    return not has_empty_block(table.num_embeddings, num_blocks)


def least_piece_columns(table: Table) -> int:
    """Return how wide a column piece is at least, if the table is cut; a table that is narrower stays whole."""
    return min(table.constraints.min_partition or DEFAULT_MIN_PARTITION, table.embedding_dim)


@functools.lru_cache(maxsize=256)
def _geometry(scheme: Scheme, num_groups: int, ranks_per_group: int) -> Geometry:
    """Return the one object for all tables whose rows fit: there are thousands of tables."""
    facts, scope = scheme.facts, Scope(scheme.facts.holders)
    num_ranks = ranks_per_group if facts.keeps_host else num_groups * ranks_per_group
    most_pieces = num_ranks if scope is Scope.RANK else 2 * num_groups
    return Geometry(
        scope=scope,
        replicated=scheme.is_replicated,
        same_host=facts.keeps_host,
        min_pieces=2 if facts.cuts_columns else 1,
        max_pieces=most_pieces if facts.cuts_columns else 1,
    )
