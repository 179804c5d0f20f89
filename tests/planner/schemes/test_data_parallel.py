from cost_models.vocabulary import Scheme
from planner.priced import Scope
from planner.schemes.base import Geometry
from planner.schemes.data_parallel import DataParallel
from tests.contracts.scheme import SchemeContract, SchemeFacts
from tests.planner.builders import make_cluster, make_table


class TestDataParallel(SchemeContract):
    facts = SchemeFacts(
        maker=DataParallel(),
        scheme=Scheme.DATA_PARALLEL,
        scope=Scope.WORLD,
        replicated=True,
    )


def test_fewer_rows_than_ranks_are_no_obstacle() -> None:
    assert DataParallel().geometry(make_table(rows=1), make_cluster(2, 2)) == Geometry(
        scope=Scope.WORLD, replicated=True
    )
