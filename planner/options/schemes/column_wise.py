"""column_wise: column pieces, each on a rank of choice."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.solver.problem import Scope


class ColumnWise:
    """Each piece is a narrower table of its own; ids go to every piece."""

    scheme = Scheme.COLUMN_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return two pieces or more, at most as many as there are ranks."""
        del table
        return Geometry(scope=Scope.RANK, min_pieces=2, max_pieces=cluster.world_size)
