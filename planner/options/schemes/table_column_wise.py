"""table_column_wise: column pieces on ranks of one host of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.solver.problem import Scope


class TableColumnWise:
    """column_wise that keeps a table's pieces together on a host."""

    scheme = Scheme.TABLE_COLUMN_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return two pieces or more, at most as many as a host has ranks."""
        del table
        return Geometry(scope=Scope.RANK, same_host=True, min_pieces=2, max_pieces=cluster.ranks_per_host)
