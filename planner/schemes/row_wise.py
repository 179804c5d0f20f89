"""row_wise: equal blocks of rows, one on every rank."""

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope
from planner.schemes.base import Geometry
from planner.schemes.blocks import has_empty_block


class RowWise:
    """Ids go to the rank of their row; partial pools are reduce-scattered."""

    scheme = Scheme.ROW_WISE

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return the one piece, unless a block would be empty or there is nothing to cut."""
        if cluster.world_size == 1 or has_empty_block(table.num_embeddings, cluster.world_size):
            return None
        return Geometry(scope=Scope.WORLD)
