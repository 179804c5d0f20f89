"""Bytes that move between assignments, against cells counted one by one."""

from dataclasses import replace

import numpy as np
import pytest

from planner.solver.evaluate import move_seconds_of, objective_of, step_seconds_of, violations
from planner.solver.movement import moved_bytes
from planner.solver.problem import Assignment, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.planning.exhaustive import placements
from tests.support.planning.moves import counted, with_move


def drawn(priced: SolverProblem, rng: np.random.Generator) -> Assignment:
    """A random assignment, legal or not, its pieces in a random order."""
    shapes: list[int] = []
    sites: list[int] = []
    for table in range(priced.num_tables):
        choices = list(placements(priced, table))
        pieces = list(choices[rng.integers(len(choices))])
        rng.shuffle(pieces)
        shapes += [shape for shape, _ in pieces]
        sites += [site for _, site in pieces]
    return Assignment(piece_shape=np.array(shapes), piece_site=np.array(sites))


@pytest.mark.parametrize("seed", range(4))
def test_bytes_are_those_of_cells_on_ranks_that_lacked_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    priced = random_priced(seed, same_host=True)
    for _ in range(20):
        before, after = drawn(priced, rng), drawn(priced, rng)
        moving = with_move(priced, before)
        assert moved_bytes(moving, after) == pytest.approx(counted(moving, before, after))
        assert moved_bytes(moving, before) == 0


def test_nothing_moves_where_nothing_runs() -> None:
    priced = random_priced(0)
    some = drawn(priced, np.random.default_rng(0))
    assert moved_bytes(priced, some) == 0
    assert objective_of(priced, some) == step_seconds_of(priced, some)


def test_ranks_that_are_gone_hold_nothing_that_helps() -> None:
    priced = random_priced(0)
    some = drawn(priced, np.random.default_rng(0))
    moving = with_move(priced, some)
    assert moving.move is not None
    elsewhere, nowhere = (
        replace(priced, move=replace(moving.move, **change))
        for change in (
            {"shard_rank": moving.move.shard_rank + priced.num_ranks},
            {"shard_columns": np.zeros_like(moving.move.shard_columns)},
        )
    )
    assert moved_bytes(elsewhere, some) == moved_bytes(nowhere, some) > 0


def test_moving_is_charged_by_the_byte_and_once() -> None:
    rng = np.random.default_rng(1)
    priced = random_priced(1)
    before, after = drawn(priced, rng), drawn(priced, rng)
    moving = with_move(priced, before, seconds_per_byte=0.5, any_seconds=3.0)
    assert move_seconds_of(moving, after) == pytest.approx(0.5 * counted(moving, before, after) + 3.0)
    assert objective_of(moving, after) == step_seconds_of(priced, after) + move_seconds_of(moving, after)
    assert move_seconds_of(moving, before) == 0


def test_more_bytes_than_may_move_are_a_fault() -> None:
    rng = np.random.default_rng(2)
    priced = random_priced(2)
    before, after = drawn(priced, rng), drawn(priced, rng)
    most = counted(with_move(priced, before), before, after)
    enough, short = (with_move(priced, before, max_bytes=most - lack) for lack in (0.0, 3.0))
    assert not any("moved" in fault for fault in violations(enough, after))
    assert "3 bytes more are moved than may be" in violations(short, after)
