import pytest

from cost_models.vocabulary import Scheme
from planner.options.schemes.table_row_wise import TableRowWise
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


class TestTableRowWise(SchemeContract):
    facts = SchemeFacts(
        maker=TableRowWise(),
        scheme=Scheme.TABLE_ROW_WISE,
        scope=Scope.HOST,
        row_blocks=lambda cluster: cluster.ranks_per_host,
    )


@pytest.mark.parametrize(("rows", "fits"), [(1, False), (2, True), (3, True)])
def test_over_hosts_of_2_ranks(rows: int, fits: bool) -> None:
    """Blocks count inside a host: 3 rows over 2 ranks make 2 + 1, however many hosts there are."""
    assert (TableRowWise().geometry(make_table(rows=rows), make_cluster(3, 2)) is not None) is fits
