"""The order of pieces in which each finds what its rank held."""

import numpy as np
import pytest

from planner.solver.movement import moved_bytes
from planner.solver.partitioners.local_search.piece_order import order_for_fewest_moves
from planner.solver.problem import Assignment, Scope, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.planning.moves import with_move


def pieces(priced: SolverProblem, placed: list[tuple[int, int]]) -> Assignment:
    """Table 0 in pieces of (columns, rank), every other table on all ranks."""
    family = int(np.flatnonzero((priced.family_table == 0) & (priced.family_max_pieces > 1))[0])
    first, last = priced.shapes_of_family
    columns = priced.shape_columns[first[family] : last[family]].tolist()
    shapes = [int(first[family]) + columns.index(width) for width, _ in placed]
    everywhere = np.flatnonzero((priced.family_scope == Scope.WORLD) & (priced.family_table > 0))
    sites = [rank for _, rank in placed]
    return Assignment(
        piece_shape=np.array([*shapes, *first[everywhere]]), piece_site=np.array([*sites, *(0 for _ in everywhere)])
    )


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ([(8, 0), (8, 1)], [(8, 1), (8, 0)], [(8, 0), (8, 1)]),
        ([(4, 3), (12, 1)], [(12, 1), (4, 2)], [(4, 2), (12, 1)]),
        ([(8, 0), (8, 1)], [(8, 2), (4, 1), (4, 0)], [(4, 0), (8, 2), (4, 1)]),
        ([(4, 0), (4, 1), (8, 2)], [(8, 2), (8, 3)], [(8, 3), (8, 2)]),
    ],
)
def test_each_piece_finds_its_own(
    before: list[tuple[int, int]], after: list[tuple[int, int]], found: list[tuple[int, int]]
) -> None:
    priced = random_priced(0)
    moving = with_move(priced, pieces(priced, before))
    best = order_for_fewest_moves(moving, pieces(priced, after))
    wanted = pieces(priced, found)
    assert best.piece_shape.tolist() == wanted.piece_shape.tolist()
    assert best.piece_site.tolist() == wanted.piece_site.tolist()
    assert moved_bytes(moving, best) < moved_bytes(moving, pieces(priced, after))


def test_what_is_best_already_stays_as_it_is() -> None:
    priced = random_priced(0)
    some = pieces(priced, [(8, 1), (4, 2), (4, 0)])
    assert order_for_fewest_moves(priced, some) is some
    assert order_for_fewest_moves(with_move(priced, some), some) is some
