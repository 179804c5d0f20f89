"""column_wise: column pieces, each on a rank of choice."""

from collections.abc import Iterator
from dataclasses import replace

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import DEFAULT_MIN_PARTITION, Cut, Piece
from planner.schemes.blocks import COLUMN_STEP, column_widths


def column_cuts(
    table: Table, cluster: Cluster, scope: Scope, max_pieces: int, *, same_host: bool = False
) -> Iterator[Cut]:
    """Yield cuts into column pieces of one scope, fewest pieces first."""
    min_width = table.constraints.min_partition or DEFAULT_MIN_PARTITION
    cluster_counts = (cluster.world_size, cluster.ranks_per_host, cluster.num_hosts)
    for widths in column_widths(table.embedding_dim, min_width, max_pieces, cluster_counts):
        offsets = (sum(widths[:i]) for i in range(len(widths)))
        pieces = tuple(
            Piece(scope=scope, column_offset=offset, num_columns=width)
            for offset, width in zip(offsets, widths, strict=True)
        )
        yield Cut(pieces=pieces, same_host=same_host)


def narrowest_cuts(table: Table) -> Table:
    """Return the table with the narrowest cuts allowed, unless the user named a width."""
    if table.constraints.min_partition is not None:
        return table
    return replace(table, constraints=replace(table.constraints, min_partition=COLUMN_STEP))


class ColumnWise:
    """Each piece is a narrower table of its own; ids go to every piece."""

    scheme = Scheme.COLUMN_WISE

    def cuts(self, table: Table, cluster: Cluster) -> Iterator[Cut]:
        """Yield cuts into at most as many pieces as there are ranks."""
        return column_cuts(table, cluster, Scope.RANK, cluster.world_size)
