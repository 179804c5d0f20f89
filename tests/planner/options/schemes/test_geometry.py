"""Every scheme keeps the contract, and its facts are those that are stated here without its own code."""

import pytest

from cost_models.vocabulary import Scheme
from planner.options.schemes.geometry import PREFERRED_ORDER, Geometry, geometry
from planner.solver.problem import Scope
from tests.support.contracts.scheme import ExpectedScheme, SchemeContract
from tests.support.planning.builders import make_cluster, make_table


class TestDataParallel(SchemeContract):
    expected = ExpectedScheme(scheme=Scheme.DATA_PARALLEL, scope=Scope.WORLD, replicated=True)


class TestTableWise(SchemeContract):
    expected = ExpectedScheme(scheme=Scheme.TABLE_WISE, scope=Scope.RANK)


class TestColumnWise(SchemeContract):
    expected = ExpectedScheme(
        scheme=Scheme.COLUMN_WISE,
        scope=Scope.RANK,
        cuts_columns=True,
        most_pieces=lambda cluster: cluster.world_size,
    )


class TestRowWise(SchemeContract):
    expected = ExpectedScheme(scheme=Scheme.ROW_WISE, scope=Scope.WORLD, row_blocks=lambda cluster: cluster.world_size)


class TestTableRowWise(SchemeContract):
    expected = ExpectedScheme(
        scheme=Scheme.TABLE_ROW_WISE, scope=Scope.HOST, row_blocks=lambda cluster: cluster.ranks_per_group
    )


class TestTableColumnWise(SchemeContract):
    expected = ExpectedScheme(
        scheme=Scheme.TABLE_COLUMN_WISE,
        scope=Scope.RANK,
        cuts_columns=True,
        most_pieces=lambda cluster: cluster.ranks_per_group,
        same_host=True,
    )


class TestGridShard(SchemeContract):
    expected = ExpectedScheme(
        scheme=Scheme.GRID_SHARD,
        scope=Scope.HOST,
        cuts_columns=True,
        most_pieces=lambda cluster: 2 * cluster.num_groups,
        row_blocks=lambda cluster: cluster.ranks_per_group,
    )


def test_every_scheme_is_held_to_the_contract() -> None:
    held = {contract.expected.scheme for contract in SchemeContract.__subclasses__()}
    assert sorted(held) == sorted(PREFERRED_ORDER) == sorted(Scheme)


def test_holders_are_scopes() -> None:
    for scheme in Scheme:
        assert Scope(scheme.facts.holders).name == scheme.facts.holders.name


@pytest.mark.parametrize(
    ("rows", "fits"), [(3, False), (4, True), (5, False), (6, False), (7, True), (9, False), (10, True)]
)
def test_row_wise_over_4_ranks(rows: int, fits: bool) -> None:
    """Blocks of ceil(5 / 4) = 2 leave rank 3 with none; 9 rows make 3 + 3 + 3 + 0, 10 rows 3 + 3 + 3 + 1."""
    assert (geometry(Scheme.ROW_WISE, make_table(rows=rows), make_cluster(2, 2)) is not None) is fits


@pytest.mark.parametrize(("rows", "fits"), [(1, False), (2, True), (3, True)])
def test_table_row_wise_over_hosts_of_2_ranks(rows: int, fits: bool) -> None:
    """Blocks count inside a host: 3 rows over 2 ranks make 2 + 1, however many hosts there are."""
    assert (geometry(Scheme.TABLE_ROW_WISE, make_table(rows=rows), make_cluster(3, 2)) is not None) is fits


def test_grid_shard_has_two_pieces_per_host_at_most() -> None:
    """Two ranks share the rows of a piece, so that two rows are enough and one is not."""
    expected = Geometry(scope=Scope.HOST, min_pieces=2, max_pieces=6)
    assert geometry(Scheme.GRID_SHARD, make_table(rows=2, dim=256), make_cluster(3, 2)) == expected
    assert geometry(Scheme.GRID_SHARD, make_table(rows=1, dim=256), make_cluster(3, 2)) is None


def test_table_column_wise_has_as_many_pieces_as_a_host_has_ranks() -> None:
    """Two pieces fill a host; the three and four that column_wise allows here would need another one."""
    assert geometry(Scheme.TABLE_COLUMN_WISE, make_table(dim=128), make_cluster(2, 2)) == Geometry(
        scope=Scope.RANK, same_host=True, min_pieces=2, max_pieces=2
    )
