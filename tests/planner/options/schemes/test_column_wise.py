from cost_models.vocabulary import Scheme
from planner.options.schemes.base import Geometry
from planner.options.schemes.column_wise import ColumnWise
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


class TestColumnWise(SchemeContract):
    facts = SchemeFacts(
        maker=ColumnWise(),
        scheme=Scheme.COLUMN_WISE,
        scope=Scope.RANK,
        cuts_columns=True,
        most_pieces=lambda cluster: cluster.world_size,
    )


def test_as_many_pieces_as_ranks() -> None:
    assert ColumnWise().geometry(make_table(dim=128), make_cluster(2, 2)) == Geometry(
        scope=Scope.RANK, min_pieces=2, max_pieces=4
    )
