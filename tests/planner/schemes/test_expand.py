"""Shards of pieces, in the order in which TorchRec wants them."""

import pytest

from cost_models.vocabulary import Tier
from planner.priced import Scope
from planner.schemes.base import Piece
from planner.schemes.expand import expand
from tests.planner.builders import make_cluster, make_table

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


def test_empty_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="no empty row block"):
        rectangles(Piece(scope=Scope.WORLD, column_offset=0, num_columns=64), 0, rows=3)
