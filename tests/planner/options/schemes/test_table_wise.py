from cost_models.vocabulary import Scheme
from planner.options.schemes.base import Geometry
from planner.options.schemes.table_wise import TableWise
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


class TestTableWise(SchemeContract):
    facts = SchemeFacts(
        maker=TableWise(),
        scheme=Scheme.TABLE_WISE,
        scope=Scope.RANK,
    )


def test_on_any_rank_whole() -> None:
    assert TableWise().geometry(make_table(rows=1, dim=128), make_cluster(2, 2)) == Geometry(scope=Scope.RANK)
