from cost_models.vocabulary import Scheme
from planner.options.schemes.base import Geometry
from planner.options.schemes.table_column_wise import TableColumnWise
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


class TestTableColumnWise(SchemeContract):
    facts = SchemeFacts(
        maker=TableColumnWise(),
        scheme=Scheme.TABLE_COLUMN_WISE,
        scope=Scope.RANK,
        cuts_columns=True,
        most_pieces=lambda cluster: cluster.ranks_per_host,
        same_host=True,
    )


def test_as_many_pieces_as_a_host_has_ranks() -> None:
    """Two pieces fill a host; the three and four that column_wise allows here would need another one."""
    assert TableColumnWise().geometry(make_table(dim=128), make_cluster(2, 2)) == Geometry(
        scope=Scope.RANK, same_host=True, min_pieces=2, max_pieces=2
    )
