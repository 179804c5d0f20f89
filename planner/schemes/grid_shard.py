"""grid_shard: column pieces, each cut into row blocks over the ranks of a host of choice."""

from collections.abc import Iterator

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Cut
from planner.schemes.blocks import has_empty_block
from planner.schemes.column_wise import column_cuts


class GridShard:
    """column_wise whose pieces are table_row_wise; pieces may share a host."""

    scheme = Scheme.GRID_SHARD

    def cuts(self, table: Table, cluster: Cluster) -> Iterator[Cut]:
        """Yield cuts of two pieces or more, up to two pieces per host."""
        if cluster.ranks_per_host < 2 or has_empty_block(table.num_embeddings, cluster.ranks_per_host):
            return iter(())
        return column_cuts(table, cluster, Scope.HOST, 2 * cluster.num_hosts)
