"""Beginning where a plan that runs is: what may stay stays."""

from dataclasses import replace

import numpy as np

from planner.solver.evaluate import touched_ranks, violations
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.resume import legal_part, resume, with_pins
from planner.solver.problem import Assignment
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import narrowest_shape, random_priced
from tests.support.planning.exhaustive import best_assignment
from tests.support.planning.moves import with_move


def part_of(assignment: Assignment, keep: np.ndarray) -> Assignment:
    return Assignment(piece_shape=assignment.piece_shape[keep], piece_site=assignment.piece_site[keep])


def test_a_plan_that_is_legal_is_the_answer() -> None:
    priced = random_priced(0)
    before = best_assignment(priced)
    assert before is not None
    found = resume(with_move(priced, before), before, LIMITS).assignment
    assert found is not None
    assert np.array_equal(found.piece_shape, before.piece_shape)
    assert np.array_equal(found.piece_site, before.piece_site)


def test_missing_tables_are_placed_next_to_those_that_stay() -> None:
    priced = random_priced(1)
    before = best_assignment(priced)
    assert before is not None
    preserved = priced.shape_table[before.piece_shape] != 1
    moving = with_move(priced, before)
    found = resume(moving, part_of(before, preserved), LIMITS).assignment
    assert found is not None
    assert violations(moving, found) == []
    stayed = priced.shape_table[found.piece_shape] != 1
    assert np.array_equal(found.piece_site[stayed], before.piece_site[preserved])


def test_what_overflows_is_repaired() -> None:
    priced = random_priced(2, fill=0.6)
    crowded = Assignment(
        piece_shape=np.array([narrowest_shape(priced, table, 0) for table in range(3)]),
        piece_site=np.zeros(3, dtype=np.int64),
    )
    tight = replace(priced, capacity_bytes=np.full((4, 1), float(priced.shape_bytes.max())))
    moving = with_move(tight, crowded)
    found = resume(moving, crowded, LIMITS).assignment
    assert found is not None
    assert violations(moving, found) == []
    assert moved_bytes(moving, found) > 0


def test_tables_leave_ranks_that_they_may_not_use_or_share() -> None:
    priced = random_priced(3)
    crowded = Assignment(
        piece_shape=np.array([narrowest_shape(priced, table, 0) for table in range(3)]),
        piece_site=np.zeros(3, dtype=np.int64),
    )
    allowed = priced.table_rank_allowed.copy()
    allowed[2, 0] = False
    strict = replace(priced, table_rank_allowed=allowed, apart=(np.array([0, 1]),))
    part = legal_part(strict, crowded)
    assert strict.shape_table[part.piece_shape].tolist() == [0]
    pinned = replace(strict, pinned_shape=crowded.piece_shape[1:2].copy(), pinned_site=np.zeros(1, dtype=np.int64))
    part = legal_part(pinned, with_pins(pinned, crowded))
    assert pinned.shape_table[part.piece_shape].tolist() == [1]
    found = resume(with_move(pinned, crowded), crowded, LIMITS).assignment
    assert found is not None
    assert violations(pinned, found) == []
    assert not touched_ranks(pinned, found)[2, 0]
