"""data_parallel: a full copy on every rank, gradients all-reduced."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.solver.problem import Scope


class DataParallel:
    """Every rank looks up its own batch in its own copy; only gradients travel."""

    scheme = Scheme.DATA_PARALLEL

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece."""
        del table, cluster
        return Geometry(scope=Scope.WORLD, replicated=True)
