from cost_models.vocabulary import Scheme
from planner.options.schemes.base import Geometry
from planner.options.schemes.grid_shard import GridShard
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


class TestGridShard(SchemeContract):
    facts = SchemeFacts(
        maker=GridShard(),
        scheme=Scheme.GRID_SHARD,
        scope=Scope.HOST,
        cuts_columns=True,
        most_pieces=lambda cluster: 2 * cluster.num_hosts,
        row_blocks=lambda cluster: cluster.ranks_per_host,
    )


def test_two_pieces_per_host_at_most() -> None:
    """Two ranks share the rows of a piece, so that two rows are enough and one is not."""
    geometry = Geometry(scope=Scope.HOST, min_pieces=2, max_pieces=6)
    assert GridShard().geometry(make_table(rows=2, dim=256), make_cluster(3, 2)) == geometry
    assert GridShard().geometry(make_table(rows=1, dim=256), make_cluster(3, 2)) is None
