"""data_parallel: a full copy on every rank, gradients all-reduced."""

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Geometry


class DataParallel:
    """Every rank looks up its own batch in its own copy; only gradients travel."""

    scheme = Scheme.DATA_PARALLEL

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece."""
        del table, cluster
        return Geometry(scope=Scope.WORLD, replicated=True)
