"""How far memory goes, and where its search begins."""

import pytest

from planner.diagnosis.fixes.ladder import SLACK, Ladder
from planner.diagnosis.fixes.memory import memory_ladder
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem, Reservation
from tests.support.planning.builders import make_cluster, make_problem

RANK_BYTES = 512e6  # on each of four ranks


def problem(hbm_fraction: float = 0.0) -> Problem:
    reserved = Reservation(hbm_fraction=hbm_fraction, dense_multiplier=0.0, input_copies=0)
    return make_problem(cluster=make_cluster(hbm_bytes=RANK_BYTES), reservation=reserved)


def short(missing_bytes: float, scope: str) -> Shortfall:
    return Shortfall(
        resource="hbm", required_bytes=1e9 + missing_bytes, available_bytes=1e9, scope=scope, message="", hint=""
    )


def more_bytes(ladder: Ladder, step: int) -> float:
    (change,) = ladder.step(step).changes
    assert isinstance(change.value, int)
    return change.value - RANK_BYTES


def test_steps_below_what_the_cluster_lacks_are_known_to_fail() -> None:
    """400 MB on four ranks are 100 MB each, and 200 MB where half of it would be reserved again."""
    for fraction, missing in ((0.0, 100e6), (0.5, 200e6)):
        ladder = memory_ladder(problem(fraction), [short(400e6, "cluster")])
        assert more_bytes(ladder, ladder.failing) < missing <= more_bytes(ladder, ladder.failing + 1)
        assert missing * SLACK <= more_bytes(ladder, ladder.guess) <= missing * SLACK + more_bytes(ladder, 1)


def test_what_one_rank_lacks_is_a_guess_only() -> None:
    ladder = memory_ladder(problem(), [short(100e6, "rank")])
    assert ladder.failing == 0
    assert more_bytes(ladder, ladder.guess) >= 100e6


@pytest.mark.parametrize(
    ("missing_bytes", "most_bytes"),
    [(400e6, 8 * RANK_BYTES), (400e9, 2 * 100e9), (0.0, RANK_BYTES), (-1e6, RANK_BYTES)],
)
def test_the_top_is_far_where_bytes_are_short_and_doubles_memory_where_not(
    missing_bytes: float, most_bytes: float
) -> None:
    ladder = memory_ladder(problem(), [short(missing_bytes, "cluster")])
    assert more_bytes(ladder, ladder.num_steps) == pytest.approx(most_bytes, rel=1e-5)
