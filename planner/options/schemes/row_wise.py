"""row_wise: equal blocks of rows, one on every rank."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.options.schemes.base import Geometry
from planner.options.schemes.blocks import has_empty_block
from planner.solver.problem import Scope


class RowWise:
    """Ids go to the rank of their row; partial pools are reduce-scattered."""

    scheme = Scheme.ROW_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece, unless a block would be empty or there is nothing to cut."""
        if cluster.world_size == 1 or has_empty_block(table.num_embeddings, cluster.world_size):
            return None
        return Geometry(scope=Scope.WORLD)
