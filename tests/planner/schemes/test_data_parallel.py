from cost_models.vocabulary import Scheme
from planner.priced import Scope
from planner.schemes.data_parallel import DataParallel
from tests.contracts.scheme import SchemeContract, SchemeFacts
from tests.planner.builders import make_cluster, make_table


class TestDataParallel(SchemeContract):
    facts = SchemeFacts(
        cuts=DataParallel(),
        scheme=Scheme.DATA_PARALLEL,
        scope=Scope.WORLD,
        replicated=True,
    )


def test_fewer_rows_than_ranks_are_no_obstacle() -> None:
    (cut,) = DataParallel().cuts(make_table(rows=1), make_cluster(2, 2))
    assert [(p.num_columns, p.replicated) for p in cut.pieces] == [(64, True)]
