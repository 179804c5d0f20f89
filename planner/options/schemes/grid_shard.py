"""grid_shard: column pieces, each cut into row blocks over the ranks of a host of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.options.schemes.blocks import has_empty_block
from planner.solver.problem import Scope


class GridShard:
    """column_wise whose pieces are table_row_wise; pieces may share a host."""

    scheme = Scheme.GRID_SHARD

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return two pieces or more, at most two per host."""
        if cluster.ranks_per_host < 2 or has_empty_block(table.num_embeddings, cluster.ranks_per_host):
            return None
        return Geometry(scope=Scope.HOST, min_pieces=2, max_pieces=2 * cluster.num_hosts)
