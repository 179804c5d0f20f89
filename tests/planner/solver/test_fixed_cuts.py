"""Cuts that are given: pieces are put into their order, and no other cut is taken for one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.evaluate import violations
from planner.solver.fixed_cuts import has_fixed_cuts, in_fixed_order
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.partitioners.kernels.moves.cut import merge_pieces, shift_columns, split_piece
from planner.solver.problem import Assignment, Scope, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.planning.proposing import Proposal, begun, plan_of, propose

_OTHER_CUT = ["a table is cut in another way than the fixed one"]


def fixed(*widths: int, table: int = 0) -> SolverProblem:
    """A problem in which a table has to be cut so."""
    return replace(
        random_priced(0),
        fixed_cut_table=np.full(len(widths), table, dtype=np.int64),
        fixed_cut_columns=np.array(widths, dtype=np.int64),
    )


def cut(priced: SolverProblem, pieces: list[tuple[int, int]], table: int = 0) -> Assignment:
    """One table in pieces of (columns, rank), every other table on all ranks."""
    first, last = priced.shapes_of_family
    family = int(np.flatnonzero((priced.family_table == table) & (priced.family_max_pieces > 1))[0])
    columns = priced.shape_columns[first[family] : last[family]].tolist()
    placed = [(int(first[family]) + columns.index(width), rank) for width, rank in pieces]
    everywhere = np.flatnonzero((priced.family_scope == Scope.WORLD) & (priced.family_table != table))
    placed += [(int(shape), 0) for shape in first[everywhere]]
    placed.sort(key=lambda piece: int(priced.shape_table[piece[0]]))
    shape, site = zip(*placed, strict=True)
    return Assignment(piece_shape=np.array(shape), piece_site=np.array(site))


def pieces_of(priced: SolverProblem, assignment: Assignment, table: int = 0) -> list[tuple[int, int]]:
    mine = priced.shape_table[assignment.piece_shape] == table
    columns = priced.shape_columns[assignment.piece_shape[mine]]
    return list(zip(columns.tolist(), assignment.piece_site[mine].tolist(), strict=True))


def test_pieces_come_into_the_given_order_and_equal_ones_stay_in_theirs() -> None:
    for table in (0, 1, 2):
        priced = fixed(4, 8, 4, table=table)
        given = cut(priced, [(8, 2), (4, 3), (4, 0)], table)
        assert violations(priced, given) == _OTHER_CUT
        ordered = in_fixed_order(priced, given)
        assert pieces_of(priced, ordered, table) == [(4, 3), (8, 2), (4, 0)]
        assert violations(priced, ordered) == []
        others = priced.shape_table[given.piece_shape] != table
        assert np.array_equal(ordered.piece_shape[others], given.piece_shape[others])


def test_another_cut_is_none_of_the_given() -> None:
    priced = fixed(4, 8, 4)
    other = cut(priced, [(8, 0), (8, 1)])
    assert in_fixed_order(priced, other) is other
    assert violations(priced, other) == _OTHER_CUT
    assert violations(random_priced(0), other) == []
    assert not has_fixed_cuts(priced, other.piece_shape)


def of_item(move: Callable[..., bool], item: int) -> Proposal:
    """The move of one item."""
    return lambda data, state, before, bar: move(data, state, item, before, bar)


@pytest.mark.parametrize("move", [shift_columns, split_piece, merge_pieces])
def test_no_move_changes_a_given_cut(move: Callable[..., bool]) -> None:
    """The same moves do change it where it is not given."""
    changed = {}
    for is_given in (True, False):
        priced = fixed(4, 8) if is_given else random_priced(0)
        chain = begun(priced, cut(priced, [(4, 3), (8, 2)]))
        (item,) = (index for index, tables in enumerate(chain._view.items.tables) if list(tables) == [0])  # noqa: SLF001
        changed[is_given] = any(propose(chain, of_item(move, item), 1e9) for _ in range(200))
    assert changed == {True: False, False: True}


def test_plans_of_a_search_have_the_given_order() -> None:
    priced = fixed(4, 8, 4)
    chain = begun(priced, cut(priced, [(8, 2), (4, 3), (4, 0)]))
    assert pieces_of(priced, plan_of(chain)) == [(4, 3), (8, 2), (4, 0)]


def test_a_given_cut_leaves_nothing_unlisted() -> None:
    """12 + 4 is a legal cut that is not listed; no table needs a list of what it may not be."""
    priced = restrict(random_priced(0), random_priced(0).family_table >= 0)
    assert not lists_all_cuts(priced)
    three = np.repeat(np.arange(3), 3)
    given = replace(priced, fixed_cut_table=three, fixed_cut_columns=np.tile([4, 8, 4], 3))
    assert lists_all_cuts(given)
