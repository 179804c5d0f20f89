"""table_column_wise: column pieces on ranks of one host of choice."""

from collections.abc import Iterator

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Cut
from planner.schemes.column_wise import column_cuts


class TableColumnWise:
    """column_wise that keeps a table's pieces together on a host."""

    scheme = Scheme.TABLE_COLUMN_WISE

    def cuts(self, table: Table, cluster: Cluster) -> Iterator[Cut]:
        """Yield cuts into at most as many pieces as a host has ranks."""
        return column_cuts(table, cluster, Scope.RANK, cluster.ranks_per_host, same_host=True)
