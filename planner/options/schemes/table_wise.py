"""table_wise: the whole table on one rank of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.solver.problem import Scope


class TableWise:
    """One rank serves all ranks' lookups; pooled rows travel by all-to-all."""

    scheme = Scheme.TABLE_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece."""
        del table, cluster
        return Geometry(scope=Scope.RANK)
