import pytest

from cost_models.vocabulary import Scheme
from planner.options.schemes.row_wise import RowWise
from planner.solver.problem import Scope
from tests.support.contracts.scheme import SchemeContract, SchemeFacts
from tests.support.planning.builders import make_cluster, make_table


class TestRowWise(SchemeContract):
    facts = SchemeFacts(
        maker=RowWise(),
        scheme=Scheme.ROW_WISE,
        scope=Scope.WORLD,
        row_blocks=lambda cluster: cluster.world_size,
    )


@pytest.mark.parametrize(
    ("rows", "fits"), [(3, False), (4, True), (5, False), (6, False), (7, True), (9, False), (10, True)]
)
def test_over_4_ranks(rows: int, fits: bool) -> None:
    """Blocks of ceil(5 / 4) = 2 leave rank 3 with none; 9 rows make 3 + 3 + 3 + 0, 10 rows 3 + 3 + 3 + 1."""
    assert (RowWise().geometry(make_table(rows=rows), make_cluster(2, 2)) is not None) is fits
