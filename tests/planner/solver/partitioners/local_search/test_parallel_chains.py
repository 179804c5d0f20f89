"""Lanes: one for a reproducible search, as many as cores for one by the clock, and no error is lost in them."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from planner.solver.evaluate import violations
from planner.solver.partitioners.base import Effort, SearchOptions
from planner.solver.partitioners.local_search import parallel_chains as num_parallel
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.local_search.parallel_chains import ParallelChains
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced
from tests.support.waiting import PATIENCE_SECONDS

BY_THE_CLOCK = replace(LIMITS, reproducible=False, time_limit_seconds=60.0, work_limit_seconds=None)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(num_parallel, "usable_cores", lambda: 2)


@pytest.mark.parametrize(("cores", "by_the_clock"), [(1, 1), (2, 2), (64, 4)])
def test_only_a_search_by_the_clock_has_more_than_one(
    monkeypatch: pytest.MonkeyPatch, cores: int, by_the_clock: int
) -> None:
    monkeypatch.setattr(num_parallel, "usable_cores", lambda: cores)
    assert ParallelChains(Effort(LIMITS)).count == 1
    assert ParallelChains(Effort(BY_THE_CLOCK)).count == by_the_clock


@pytest.mark.usefixtures("two_cores")
def test_tasks_run_side_by_side_and_begin_in_their_order() -> None:
    meeting, begun = threading.Barrier(2, timeout=PATIENCE_SECONDS), []

    def tasks() -> Iterator[Callable[[], object]]:
        for index in range(4):
            begun.append(index)
            yield meeting.wait

    ParallelChains(Effort(BY_THE_CLOCK)).each(tasks())  # a lone lane would wait for ever
    assert begun == [0, 1, 2, 3]


@pytest.mark.usefixtures("two_cores")
def test_an_error_stops_the_other_thread_and_is_raised() -> None:
    effort = Effort(BY_THE_CLOCK)
    asked = []

    def wait() -> None:
        while effort.fraction < 1:
            time.sleep(0.001)

    def fail() -> None:
        raise ArithmeticError("of a task")

    def tasks() -> Iterator[Callable[[], None]]:
        for task in (wait, fail, wait, wait):
            asked.append(task)
            yield task

    with pytest.raises(ArithmeticError, match="of a task"):
        ParallelChains(effort).each(tasks())
    assert effort.fraction == 1
    assert len(asked) <= 3


@pytest.mark.usefixtures("two_cores")
def test_a_search_by_the_clock_uses_two_cores_and_a_reproducible_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rounds of heat and races; plans are told by one lane at a time."""
    priced = random_priced(0, num_tables=24)
    run, threads, reporting = Chain.run, set(), threading.Lock()

    def noted(self: Chain, *arguments: object) -> None:
        threads.add(threading.get_ident())
        run(self, *arguments)  # type: ignore[arg-type]

    def report(_: object) -> None:
        assert reporting.acquire(blocking=False), "told twice at once"
        time.sleep(0.01)
        reporting.release()

    monkeypatch.setattr(Chain, "run", noted)
    found = (
        LocalSearch()
        .solve(priced, replace(BY_THE_CLOCK, time_limit_seconds=1.0), SearchOptions(on_incumbent=report))
        .assignment
    )
    assert found is not None
    assert violations(priced, found) == []
    assert len(threads) >= 2
    threads.clear()
    LocalSearch().solve(priced, LIMITS, SearchOptions(on_incumbent=report))
    assert threads == {threading.get_ident()}
