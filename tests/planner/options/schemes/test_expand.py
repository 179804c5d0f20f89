"""Shards of pieces, in the order in which TorchRec wants them."""

import numpy as np
import pytest

from cost_models.vocabulary import Tier
from planner.domain.plan.shards import Shards
from planner.options.schemes.expand import SitedPieces, expand, expand_all
from planner.options.schemes.geometry import Piece
from planner.solver.problem import Scope
from tests.support.planning.builders import make_cluster, make_table

CLUSTER = make_cluster(2, 2)


def rectangles(piece: Piece, site: int, rows: int = 777) -> list[tuple[int, int, int]]:
    shards = expand(make_table(rows=rows), piece, site, CLUSTER, Tier.HBM)
    return [(shard.rank, shard.row_offset, shard.num_rows) for shard in shards]


def test_rank() -> None:
    assert rectangles(Piece(scope=Scope.RANK, column_offset=0, num_columns=64), 3) == [(3, 0, 777)]


def test_host() -> None:
    piece = Piece(scope=Scope.HOST, column_offset=0, num_columns=64)
    assert rectangles(piece, 1) == [(2, 0, 389), (3, 389, 388)]


def test_world() -> None:
    piece = Piece(scope=Scope.WORLD, column_offset=0, num_columns=64)
    assert rectangles(piece, 0) == [(0, 0, 195), (1, 195, 195), (2, 390, 195), (3, 585, 192)]


def test_replicas() -> None:
    piece = Piece(scope=Scope.WORLD, column_offset=0, num_columns=64, replicated=True)
    assert rectangles(piece, 0) == [(rank, 0, 777) for rank in range(4)]


def test_pieces_of_several_tables_are_expanded_one_after_the_other() -> None:
    sited = (
        (7, Piece(scope=Scope.HOST, column_offset=0, num_columns=4), 1, Tier.HBM),
        (7, Piece(scope=Scope.HOST, column_offset=4, num_columns=8), 0, Tier.DDR),
        (9, Piece(scope=Scope.RANK, column_offset=0, num_columns=64), 3, Tier.SSD),
        (5, Piece(scope=Scope.WORLD, column_offset=0, num_columns=64, replicated=True), 0, Tier.HBM),
        (8, Piece(scope=Scope.WORLD, column_offset=0, num_columns=64), 0, Tier.DDR),
    )
    pieces = SitedPieces(
        table_rows=np.array([rows for rows, _, _, _ in sited]),
        scope=np.array([piece.scope for _, piece, _, _ in sited], dtype=np.int64),
        replicated=np.array([piece.replicated for _, piece, _, _ in sited]),
        column_offset=np.array([piece.column_offset for _, piece, _, _ in sited]),
        num_columns=np.array([piece.num_columns for _, piece, _, _ in sited]),
        site=np.array([site for _, _, site, _ in sited]),
        tier=np.array([tier for _, _, _, tier in sited], dtype=np.int64),
        hot_rows=np.zeros(len(sited), dtype=np.int64),
    )
    assert pieces.num_shards(CLUSTER).tolist() == [2, 2, 1, 4, 4]
    one_by_one = [expand(make_table(rows=rows), piece, site, CLUSTER, tier) for rows, piece, site, tier in sited]
    assert expand_all(pieces, CLUSTER) == Shards.joined(one_by_one)


def test_empty_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="no empty row block"):
        rectangles(Piece(scope=Scope.WORLD, column_offset=0, num_columns=64), 0, rows=3)
