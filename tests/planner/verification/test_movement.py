"""What moves between placements, against cells counted one by one; how long it takes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Evidence, Kernel, Scheme, Tier
from planner.domain.plan.movement import RankPair
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.table import Table
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.solver.problem import Scope
from planner.verification.movement import cell_bytes, links_of, seconds_per_byte, transfer, transfer_seconds
from tests.support.planning.builders import make_cluster, make_table
from tests.support.planning.moves import placed_cells

CLUSTER = make_cluster(2, 2)
SCOPES = {
    Scheme.TABLE_WISE: Scope.RANK,
    Scheme.COLUMN_WISE: Scope.RANK,
    Scheme.ROW_WISE: Scope.WORLD,
    Scheme.TABLE_ROW_WISE: Scope.HOST,
    Scheme.GRID_SHARD: Scope.HOST,
    Scheme.DATA_PARALLEL: Scope.WORLD,
}


def placed(table: Table, scheme: Scheme, rng: np.random.Generator) -> TablePlacement:
    """A table under a scheme on random sites; two pieces of unequal widths where there are several."""
    scope = SCOPES[scheme]
    widths = (
        [4, table.embedding_dim - 4] if scheme in (Scheme.COLUMN_WISE, Scheme.GRID_SHARD) else [table.embedding_dim]
    )
    shards: list[Shards] = []
    for offset, width in zip([0, widths[0]], widths, strict=False):
        site = int(rng.integers({Scope.RANK: 4, Scope.HOST: 2, Scope.WORLD: 1}[scope]))
        piece = Piece(scope=scope, column_offset=offset, num_columns=width, replicated=scheme is Scheme.DATA_PARALLEL)
        shards.append(expand(table, piece, site, CLUSTER, Tier.HBM))
    return TablePlacement(
        name=table.name, sharding_type=scheme, compute_kernel=Kernel.FUSED, shards=Shards.joined(shards)
    )


@pytest.mark.parametrize("seed", range(10))
def test_bytes_are_those_of_cells_on_ranks_that_lacked_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = tuple(make_table(f"t{i}", rows=7, dim=12, optimizer="adam") for i in range(4))
    before, after = (
        Placement(
            world_size=4,
            ranks_per_host=2,
            tables=tuple(placed(table, list(SCOPES)[rng.integers(len(SCOPES))], rng) for table in tables),
        )
        for _ in range(2)
    )
    found = transfer(tables, before, after)
    was, is_now = placed_cells(before), placed_cells(after)
    each = 4 + 8
    assert cell_bytes(tables[0], None) == each
    assert found.unmoved_bytes == each * len(was & is_now)
    assert found.moved_bytes == each * len(is_now - was)
    assert found.new_bytes == 0
    for pair in found.pairs:
        assert pair.source != pair.target
        sent = {cell for cell in is_now - was if cell[1] == pair.target}
        had = {(name, pair.target, row, column) for name, rank, row, column in was if rank == pair.source}
        assert 0 < pair.bytes <= each * len(sent & had)
    for rank in range(4):
        received = sum(pair.bytes for pair in found.pairs if pair.target == rank)
        assert received == each * len({cell for cell in is_now - was if cell[1] == rank})


def bricks(table: Table, widths: tuple[int, ...], ranks: tuple[int, ...]) -> TablePlacement:
    """Courses of three rows, each cut into columns at other places than the one above."""
    shards = [
        Shard(
            rank=ranks[(course + offset) % len(ranks)],
            row_offset=3 * course,
            num_rows=3,
            column_offset=offset,
            num_columns=width,
            tier=Tier.HBM,
        )
        for course in range(4)
        for offset, width in ((0, widths[course]), (widths[course], 12 - widths[course]))
    ]
    return TablePlacement(
        name=table.name, sharding_type=Scheme.GRID_SHARD, compute_kernel=Kernel.FUSED, shards=Shards.of(shards[::-1])
    )


def test_partitions_that_no_scheme_makes() -> None:
    table = make_table("a", rows=12, dim=12, optimizer="none")
    before, after = (
        Placement(world_size=4, ranks_per_host=2, tables=(bricks(table, widths, ranks),))
        for widths, ranks in (((4, 8, 4, 6), (0, 1, 2, 3)), ((8, 4, 4, 2), (3, 1, 0, 2)))
    )
    found = transfer((table,), before, after)
    was, is_now = placed_cells(before), placed_cells(after)
    holder = {(row, column): rank for _, rank, row, column in was}
    expected = Counter((holder[row, column], rank) for _, rank, row, column in is_now - was)
    assert {(pair.source, pair.target): pair.bytes for pair in found.pairs} == {
        pair: 4.0 * count for pair, count in expected.items()
    }
    assert found.unmoved_bytes == 4 * len(was & is_now) > 0


def test_another_order_of_the_same_shards_moves_nothing() -> None:
    table = make_table("a", rows=12, dim=12)
    one = bricks(table, (4, 8, 4, 6), (0, 1, 2, 3))
    before, after = (
        Placement(world_size=4, ranks_per_host=2, tables=(placed,))
        for placed in (one, replace(one, shards=one.shards[::-1]))
    )
    found = transfer((table,), before, after)
    assert (found.pairs, found.new_bytes) == ((), 0.0)
    assert found.unmoved_bytes == cell_bytes(table, None) * 144


def test_what_a_row_holds_besides_its_cells_is_spread_over_them() -> None:
    assert cell_bytes(make_table(dim=64, optimizer="rowwise_adagrad"), None) == 4 + 4 / 64
    assert cell_bytes(make_table(dim=32, data_type="int8", optimizer="none"), None) == 1 + 4 / 32


def test_a_table_that_is_new_or_of_another_shape_does_not_move() -> None:
    old = make_table("a", rows=7, dim=12), make_table("b", rows=7, dim=12), make_table("c", rows=7, dim=12)
    new = make_table("a", rows=8, dim=12), make_table("b", rows=7, dim=12), make_table("d", rows=7, dim=12)
    before, after = (
        Placement(
            world_size=4,
            ranks_per_host=2,
            tables=tuple(placed(table, Scheme.TABLE_WISE, np.random.default_rng(0)) for table in tables),
        )
        for tables in (old, new)
    )
    found = transfer(new, before, after)
    assert found.new_bytes == cell_bytes(new[0], None) * 12 * (8 + 7)
    assert found.moved_bytes + found.unmoved_bytes == cell_bytes(new[1], None) * 12 * 7


def test_of_several_copies_the_nearest_is_sent() -> None:
    table = make_table("a", rows=4, dim=4)
    copies = placed(table, Scheme.DATA_PARALLEL, np.random.default_rng(0))
    before = Placement(
        world_size=3,
        ranks_per_host=1,
        tables=(
            TablePlacement(
                name="a",
                sharding_type=Scheme.DATA_PARALLEL,
                compute_kernel=copies.compute_kernel,
                shards=copies.shards[:3],
            ),
        ),
    )
    after = Placement(world_size=4, ranks_per_host=2, tables=(copies,))
    assert transfer((table,), before, after).pairs == (RankPair(source=2, target=3, bytes=64.0),)


def test_the_busiest_rank_says_how_long_it_takes() -> None:
    cluster = make_cluster(2, 2, intra_host_bytes_per_second=100.0, inter_host_bytes_per_second=10.0)
    inside, outside = RankPair(source=0, target=1, bytes=300.0), RankPair(source=0, target=2, bytes=40.0)
    back = RankPair(source=3, target=2, bytes=600.0)
    assert transfer_seconds((), cluster) == 0
    assert transfer_seconds((inside,), cluster) == 3
    assert transfer_seconds((inside, outside), cluster) == 4
    assert transfer_seconds((inside, outside, back), cluster) == 6
    assert links_of(cluster).evidence is Evidence.ESTIMATED


def test_bytes_are_priced_by_the_slowest_link_that_they_may_take() -> None:
    links = {"intra_host_bytes_per_second": 100.0, "inter_host_bytes_per_second": 10.0}
    assert seconds_per_byte(make_cluster(2, 2, **links)) == 1 / 40
    assert seconds_per_byte(make_cluster(1, 4, **links)) == 1 / 400
    assert seconds_per_byte(make_cluster(4, 1, **links)) == 1 / 40
    assert seconds_per_byte(make_cluster(1, 1, **links)) == 0
