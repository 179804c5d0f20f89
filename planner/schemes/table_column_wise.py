"""table_column_wise: column pieces on ranks of one host of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Geometry


class TableColumnWise:
    """column_wise that keeps a table's pieces together on a host."""

    scheme = Scheme.TABLE_COLUMN_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return two pieces or more, at most as many as a host has ranks."""
        del table
        return Geometry(scope=Scope.RANK, same_host=True, min_pieces=2, max_pieces=cluster.ranks_per_host)
