"""How much of a limit is spent: by counted work, and by the clock once work falls far behind."""

from dataclasses import replace

import pytest

from planner.solver.partitioners import base
from planner.solver.partitioners.base import Effort, SolveLimits


class Clock:
    """A clock that stands still between settings."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(base, "time", clock)
    return clock


LIMITS = SolveLimits(time_limit_seconds=10.0, work_limit_seconds=4.0)


def test_work_counts_while_it_keeps_up_with_the_clock(clock: Clock) -> None:
    effort = Effort(LIMITS)
    for step in range(1, 5):
        clock.seconds += 2.4  # hardly faster than the clock
        effort.spend(1.0)
        assert effort.fraction == pytest.approx(step / 4)
    assert effort.limit == "deterministic_time"


def test_the_clock_counts_once_work_is_far_behind_and_nothing_is_skipped(clock: Clock) -> None:
    """What is left of the work is shared out over what is left of the time."""
    effort = Effort(LIMITS)
    effort.spend(0.4)
    assert effort.fraction == pytest.approx(0.1)
    clock.seconds += 4.0
    assert effort.fraction == pytest.approx(0.1)  # from here, 0.1 of the work at 0.4 of the time
    assert effort.limit == "time"
    clock.seconds += 3.0
    assert effort.fraction == pytest.approx(0.1 + 0.9 * 0.5)
    effort.spend(3.0)  # is counted no more
    assert effort.fraction == pytest.approx(0.55)
    assert not effort.is_late
    clock.seconds += 3.0
    assert effort.fraction == pytest.approx(1.0)
    assert effort.is_late


def test_the_clock_leaves_later_members_of_a_portfolio_their_share(clock: Clock) -> None:
    effort = Effort(replace(LIMITS, time_share=0.6))
    effort.spend(0.4)
    clock.seconds += 3.0
    assert effort.fraction == pytest.approx(0.1)
    clock.seconds += 1.5
    assert effort.fraction == pytest.approx(0.1 + 0.9 * 0.5)
    clock.seconds += 1.5
    assert effort.fraction == pytest.approx(1.0)
    assert not effort.is_late


def test_what_comes_before_the_first_work_leaves_work_counting(clock: Clock) -> None:
    """Such as compiling: what is done once says nothing about how fast work will be."""
    effort = Effort(LIMITS)
    clock.seconds += 5.0
    assert effort.fraction == 0.0
    effort.spend(0.4)
    clock.seconds += 1.0
    assert effort.fraction == pytest.approx(0.1)
    assert effort.limit == "deterministic_time"


def test_by_the_clock_the_clock_counts_from_the_start(clock: Clock) -> None:
    effort = Effort(SolveLimits(time_limit_seconds=10.0, work_limit_seconds=4.0, reproducible=False))
    effort.spend(4.0)
    assert effort.fraction == 0.0
    clock.seconds += 2.5
    assert effort.fraction == pytest.approx(0.25)
    assert effort.limit == "time"


def test_a_search_that_is_stopped_has_spent_everything(clock: Clock) -> None:
    effort = Effort(LIMITS)
    effort.stop()
    assert effort.fraction == 1.0


def test_a_part_ends_with_what_is_left_and_is_taken_over(clock: Clock) -> None:
    effort = Effort(LIMITS)
    effort.spend(1.0)
    part = effort.fork(0.5)
    assert part.fraction == 0.0
    assert part.total_seconds == pytest.approx(1.5)
    part.spend(0.75)
    assert part.fraction == pytest.approx(0.5)
    assert effort.fraction == pytest.approx(0.25)
    effort.join([part])
    assert effort.fraction == pytest.approx(1.75 / 4)
    whole = effort.fork()
    assert whole.fraction == effort.fraction
    part_of_part = part.fork(0.5)
    part_of_part.spend(0.375)
    assert part_of_part.fraction == pytest.approx(1.0)
    assert part_of_part.total_seconds == pytest.approx(0.375)


def test_work_side_by_side_counts_once(clock: Clock) -> None:
    """As long as the longest; if the clock takes over in one of them, it counts for what follows."""
    effort = Effort(LIMITS)
    first, second = effort.fork(), effort.fork()
    first.spend(0.4)
    second.spend(0.8)
    effort.join([first, second])
    assert effort.fraction == pytest.approx(0.2)
    slow = effort.fork()
    clock.seconds += 9.0
    assert slow.fraction < 1
    assert slow.limit == "time"
    effort.join([slow, effort.fork()])
    assert effort.limit == "time"


def test_if_one_is_stopped_all_are(clock: Clock) -> None:
    effort = Effort(LIMITS)
    part = effort.fork(0.5)
    part.fork().stop()
    assert effort.is_stopped
    assert part.fraction == effort.fraction == 1.0
