from cost_models.vocabulary import Scheme
from planner.priced import Scope
from planner.schemes.grid_shard import GridShard
from tests.contracts.scheme import SchemeContract, SchemeFacts
from tests.planner.builders import make_cluster, make_table


class TestGridShard(SchemeContract):
    facts = SchemeFacts(
        cuts=GridShard(),
        scheme=Scheme.GRID_SHARD,
        scope=Scope.HOST,
        cuts_columns=True,
        most_pieces=lambda cluster: 2 * cluster.num_hosts,
        row_blocks=lambda cluster: cluster.ranks_per_host,
    )


def test_256_columns_over_2_hosts_of_2_ranks() -> None:
    """64 quads in 2, 3 and 4 pieces, two pieces per host at most; each piece in two row blocks of a host."""
    cuts = GridShard().cuts(make_table(dim=256), make_cluster(2, 2))
    widths = [[p.num_columns for p in cut.pieces] for cut in cuts]
    assert widths == [[128, 128], [88, 84, 84], [64, 64, 64, 64]]
