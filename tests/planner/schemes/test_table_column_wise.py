from cost_models.vocabulary import Scheme
from planner.priced import Scope
from planner.schemes.table_column_wise import TableColumnWise
from tests.contracts.scheme import SchemeContract, SchemeFacts
from tests.planner.builders import make_cluster, make_table


class TestTableColumnWise(SchemeContract):
    facts = SchemeFacts(
        cuts=TableColumnWise(),
        scheme=Scheme.TABLE_COLUMN_WISE,
        scope=Scope.RANK,
        cuts_columns=True,
        most_pieces=lambda cluster: cluster.ranks_per_host,
        same_host=True,
    )


def test_128_columns_over_2_hosts_of_2_ranks() -> None:
    """Two pieces fill a host; the three and four that column_wise offers here would need another one."""
    cuts = list(TableColumnWise().cuts(make_table(dim=128), make_cluster(2, 2)))
    assert [[p.num_columns for p in cut.pieces] for cut in cuts] == [[64, 64]]
    assert cuts[0].same_host
