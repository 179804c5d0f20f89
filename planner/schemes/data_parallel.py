"""data_parallel: a full copy on every rank, gradients all-reduced."""

from collections.abc import Iterator

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Cut, whole_table


class DataParallel:
    """Every rank looks up its own batch in its own copy; only gradients travel."""

    scheme = Scheme.DATA_PARALLEL

    def cuts(self, table: Table, cluster: Cluster) -> Iterator[Cut]:
        """Yield the one cut."""
        del cluster
        yield whole_table(table, Scope.WORLD, replicated=True)
