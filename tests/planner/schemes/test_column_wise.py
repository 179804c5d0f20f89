from cost_models.vocabulary import Scheme
from planner.priced import Scope
from planner.schemes.column_wise import ColumnWise
from tests.contracts.scheme import SchemeContract, SchemeFacts
from tests.planner.builders import make_cluster, make_table


class TestColumnWise(SchemeContract):
    facts = SchemeFacts(
        cuts=ColumnWise(),
        scheme=Scheme.COLUMN_WISE,
        scope=Scope.RANK,
        cuts_columns=True,
        most_pieces=lambda cluster: cluster.world_size,
    )


def test_128_columns_over_4_ranks() -> None:
    """32 quads: in halves 16 + 16, in thirds 11 + 11 + 10, in quarters 8 each, the least width of 32 columns."""
    cuts = ColumnWise().cuts(make_table(dim=128), make_cluster(2, 2))
    assert [[p.num_columns for p in cut.pieces] for cut in cuts] == [[64, 64], [44, 44, 40], [32, 32, 32, 32]]
