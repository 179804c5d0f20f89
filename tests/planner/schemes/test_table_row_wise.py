import pytest

from cost_models.vocabulary import Scheme
from planner.priced import Scope
from planner.schemes.table_row_wise import TableRowWise
from tests.contracts.scheme import SchemeContract, SchemeFacts
from tests.planner.builders import make_cluster, make_table


class TestTableRowWise(SchemeContract):
    facts = SchemeFacts(
        cuts=TableRowWise(),
        scheme=Scheme.TABLE_ROW_WISE,
        scope=Scope.HOST,
        row_blocks=lambda cluster: cluster.ranks_per_host,
    )


@pytest.mark.parametrize(("rows", "offered"), [(1, 0), (2, 1), (3, 1)])
def test_over_hosts_of_2_ranks(rows: int, offered: int) -> None:
    """Blocks count inside a host: 3 rows over 2 ranks make 2 + 1, however many hosts there are."""
    assert len(list(TableRowWise().cuts(make_table(rows=rows), make_cluster(3, 2)))) == offered
