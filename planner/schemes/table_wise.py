"""table_wise: the whole table on one rank of choice."""

from collections.abc import Iterator

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Cut, whole_table


class TableWise:
    """One rank serves all ranks' lookups; pooled rows travel by all-to-all."""

    scheme = Scheme.TABLE_WISE

    def cuts(self, table: Table, cluster: Cluster) -> Iterator[Cut]:
        """Yield the one cut."""
        del cluster
        yield whole_table(table, Scope.RANK)
