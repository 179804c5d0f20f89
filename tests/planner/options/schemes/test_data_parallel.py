from cost_models.vocabulary import Scheme
from planner.options.schemes.base import Geometry
from planner.options.schemes.data_parallel import DataParallel
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


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
