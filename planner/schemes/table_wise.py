"""table_wise: the whole table on one rank of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Geometry


class TableWise:
    """One rank serves all ranks' lookups; pooled rows travel by all-to-all."""

    scheme = Scheme.TABLE_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece."""
        del table, cluster
        return Geometry(scope=Scope.RANK)
