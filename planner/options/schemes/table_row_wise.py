"""table_row_wise: equal blocks of rows over the ranks of one host of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.options.schemes.blocks import has_empty_block
from planner.solver.problem import Scope


class TableRowWise:
    """Partial pools are reduce-scattered inside the host, then exchanged between hosts."""

    scheme = Scheme.TABLE_ROW_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece, unless a block would be empty or the host has one rank."""
        if cluster.ranks_per_host == 1 or has_empty_block(table.num_embeddings, cluster.ranks_per_host):
            return None
        return Geometry(scope=Scope.HOST)
