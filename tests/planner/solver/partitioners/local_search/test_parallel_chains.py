"""Threads: as many as say what a search finds whatever the machine, and no error is lost in them."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import Effort, Incumbent, SearchOptions, SolveLimits
from planner.solver.partitioners.local_search import parallel_chains
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.local_search.parallel_chains import ChainThread, ParallelChains
from planner.solver.problem import Assignment, SolverProblem
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced
from tests.support.waiting import PATIENCE_SECONDS

BY_THE_CLOCK = replace(LIMITS, reproducible=False, time_limit_seconds=60.0, work_limit_seconds=None)


@pytest.mark.parametrize(("cores", "by_the_clock"), [(1, 1), (2, 2), (64, 4)])
def test_a_reproducible_search_has_two_whatever_the_machine(
    monkeypatch: pytest.MonkeyPatch, cores: int, by_the_clock: int
) -> None:
    monkeypatch.setattr(parallel_chains, "usable_cores", lambda: cores)
    assert ParallelChains(Effort(LIMITS)).count == 2
    assert ParallelChains(Effort(BY_THE_CLOCK)).count == by_the_clock


def test_tasks_run_side_by_side_and_begin_in_their_order() -> None:
    meeting, begun = threading.Barrier(2, timeout=PATIENCE_SECONDS), []

    def tasks() -> Iterator[Callable[[ChainThread], object]]:
        for index in range(4):
            begun.append(index)
            yield lambda _: meeting.wait()

    ParallelChains(Effort(LIMITS)).each(tasks())  # a lone thread would wait for ever
    assert begun == [0, 1, 2, 3]


def test_an_error_stops_the_other_thread_and_is_raised() -> None:
    effort = Effort(LIMITS)
    asked = []

    def wait(thread: ChainThread) -> None:
        while thread.effort.fraction < 1:
            time.sleep(0.001)

    def fail(_: ChainThread) -> None:
        raise ArithmeticError("of a task")

    def tasks() -> Iterator[Callable[[ChainThread], None]]:
        for task in (wait, fail, wait, wait):
            asked.append(task)
            yield task

    with pytest.raises(ArithmeticError, match="of a task"):
        ParallelChains(effort).each(tasks())
    assert effort.fraction == 1
    assert len(asked) == 2


class Found:
    """What threads see of a chain that found a plan."""

    def __init__(self, assignment: Assignment, seconds: float = 1.0) -> None:
        self.best_seconds, self._assignment = seconds, assignment

    def assignment(self) -> Assignment:
        return self._assignment


def plan(number: int) -> Assignment:
    return Assignment(piece_shape=np.array([number]), piece_site=np.array([0]))


@pytest.mark.parametrize("late_thread", [0, 1])
def test_plans_are_reported_in_the_order_of_work_however_slow_a_thread_is(late_thread: int) -> None:
    """The thread that is not late does all of its work before the other one begins."""
    reported: list[int] = []
    is_done = threading.Event()

    def task(number: int) -> Callable[[ChainThread], None]:
        def run(thread: ChainThread) -> None:
            if number == late_thread:
                assert is_done.wait(PATIENCE_SECONDS)
            for step in range(3):
                thread.effort.spend(1e-3)
                thread.after_look(Found(plan(10 * step + number)), is_better=step != 1 or number == 0)  # type: ignore[arg-type]
            if number != late_thread:
                is_done.set()

        return run

    chains = ParallelChains(Effort(LIMITS), lambda _: True, lambda found: reported.append(int(found.piece_shape[0])))
    chains.each([task(0), task(1)])
    assert reported == [0, 1, 10, 20, 21]


@pytest.mark.parametrize("late_thread", [0, 1])
def test_a_plan_must_be_worth_a_report_when_its_turn_comes(late_thread: int) -> None:
    """The first plan by work is nearly as good as the second one, so that only the first is worth a report."""
    reported: list[float] = []
    is_done = threading.Event()

    def task(number: int) -> Callable[[ChainThread], None]:
        def run(thread: ChainThread) -> None:
            if number == late_thread:
                assert is_done.wait(PATIENCE_SECONDS)
            thread.effort.spend((number + 1) * 1e-3)
            thread.after_look(Found(plan(number), 1.0 - number * 1e-4), is_better=True)  # type: ignore[arg-type]
            if number != late_thread:
                is_done.set()

        return run

    def is_worth_reporting(seconds: float) -> bool:
        return not reported or seconds < min(reported) * (1 - 1e-3)

    chains = ParallelChains(
        Effort(LIMITS), is_worth_reporting, lambda found: reported.append(1.0 - int(found.piece_shape[0]) * 1e-4)
    )
    chains.each([task(0), task(1)])
    assert reported == [1.0]


def course_of(
    monkeypatch: pytest.MonkeyPatch, priced: SolverProblem, limits: SolveLimits, lower_bound_seconds: float, seed: int
) -> tuple[list[float], Assignment]:
    """Return what a search reports, and finds, if threads rest at random."""
    after_look, random, reported = ChainThread.after_look, Random(seed), []  # no secret

    def rest(self: ChainThread, chain: Chain, is_better: bool) -> None:
        time.sleep(random.choice((0.0, 0.0, 0.0, 0.004)))
        after_look(self, chain, is_better=is_better)

    def report(found: Incumbent) -> None:
        reported.append(found.objective_seconds)

    monkeypatch.setattr(ChainThread, "after_look", rest)
    outcome = LocalSearch().solve(
        priced, limits, SearchOptions(on_incumbent=report, lower_bound_seconds=lower_bound_seconds)
    )
    monkeypatch.setattr(ChainThread, "after_look", after_look)
    assert outcome.assignment is not None
    return reported, outcome.assignment


@pytest.mark.parametrize("ends_early", [False, True])
def test_equal_searches_report_and_find_the_same_whichever_thread_is_faster(
    monkeypatch: pytest.MonkeyPatch, ends_early: bool
) -> None:
    """Also where a plan within the gap ends the search while the other thread looks for one."""
    priced, limits = random_priced(3, num_tables=24), replace(LIMITS, work_limit_seconds=0.15)
    reported, found = course_of(monkeypatch, priced, limits, 0.0, 0)
    bound = reported[len(reported) // 2] if ends_early else 0.0
    reported, found = course_of(monkeypatch, priced, limits, bound, 1)
    assert len(reported) > 1
    assert reported[-1] == objective_of(priced, found)
    for seed in range(2, 6):
        again, other = course_of(monkeypatch, priced, limits, bound, seed)
        assert again == reported
        assert np.array_equal(other.piece_shape, found.piece_shape)
        assert np.array_equal(other.piece_site, found.piece_site)


@pytest.mark.parametrize("limits", [replace(BY_THE_CLOCK, time_limit_seconds=1.0), LIMITS])
def test_a_search_uses_two_cores(monkeypatch: pytest.MonkeyPatch, limits: SolveLimits) -> None:
    """Both rounds of heat and races; plans are reported by one thread at a time."""
    monkeypatch.setattr(parallel_chains, "usable_cores", lambda: 2)
    priced = random_priced(0, num_tables=24)
    run, threads, reporting = Chain.run, set(), threading.Lock()

    def noted(self: Chain, *arguments: object) -> None:
        threads.add(threading.get_ident())
        run(self, *arguments)  # type: ignore[arg-type]

    def report(_: object) -> None:
        assert reporting.acquire(blocking=False), "reported twice at once"
        time.sleep(0.01)
        reporting.release()

    monkeypatch.setattr(Chain, "run", noted)
    found = LocalSearch().solve(priced, limits, SearchOptions(on_incumbent=report)).assignment
    assert found is not None
    assert violations(priced, found) == []
    assert len(threads) >= 2
