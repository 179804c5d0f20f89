"""Chains in parallel threads, with plans reported in the order of the work that found them.

A reproducible search has two threads on any machine, since its plan must not depend on the number of cores. A search
by the clock has as many as cores that it may use. The compiled loops run without the interpreter lock.
"""

import functools
import heapq
import itertools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from planner.solver.machine import usable_cores
from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.problem import Assignment

_THREADS = 2
#: With more, chains learn too little from each other.
_MAX_PARALLEL_CHAINS = 4


@dataclass(frozen=True, slots=True, order=True)
class Report:
    """A plan that a thread found. Reports are ordered by the work that their thread had done, then by thread."""

    work_seconds: float
    thread: int
    seconds: float = field(compare=False)  # the objective, as the chain adds it up
    assignment: Assignment = field(compare=False)


class ChainThread:
    """The thread that a task runs in: it counts its own effort, and reports the plans of the task."""

    def __init__(self, number: int, effort: Effort, course: "_Course") -> None:
        self._number, self.effort, self._course = number, effort, course

    def after_look(self, chain: Chain, is_better: bool) -> None:
        """Report the best plan of a chain if it ``is_better``, and plans of other threads that waited for this one."""
        work_seconds, seconds = self.effort.spent.work_seconds, chain.best_seconds
        assignment = chain.assignment() if is_better and self._course.is_worth_reporting(seconds) else None
        found = None if assignment is None else Report(work_seconds, self._number, seconds, assignment)
        self._course.reach(self._number, work_seconds, found)

    def end(self) -> None:
        """Let no plan wait for this thread any longer."""
        self._course.reach(self._number, np.inf, None)


class _Course:
    """Passes the plans of several threads on in the order of the work that each thread had done.

    So neither the plans that are passed on nor their order depends on the speed of a thread. A plan waits until all
    other threads have done more work than its own thread had.
    """

    def __init__(
        self, num_threads: int, is_worth_reporting: Callable[[float], bool], report: Callable[[Assignment], None]
    ) -> None:
        self.is_worth_reporting, self._report_one = is_worth_reporting, report
        self._reached_seconds = [-np.inf] * num_threads  # of work, by every thread
        self._waiting: list[Report] = []
        self._lock, self._is_reporting = threading.Lock(), False

    def reach(self, thread: int, work_seconds: float, found: Report | None) -> None:
        """Note the work that a thread has done and the plan that it found; report plans that no other can precede.

        A plan was worth a report by those that had been passed on when it was found. How many these are depends on the
        speed of the threads, so that the question is asked again when its turn comes.
        """
        with self._lock:
            self._reached_seconds[thread] = work_seconds
            if found is not None:
                heapq.heappush(self._waiting, found)
            if self._is_reporting or not self._is_due():
                return
            self._is_reporting = True
        while True:
            with self._lock:
                if not self._is_due():
                    self._is_reporting = False
                    return
                due = heapq.heappop(self._waiting)
            if self.is_worth_reporting(due.seconds):
                self._report_one(due.assignment)

    def _is_due(self) -> bool:
        if not self._waiting:
            return False
        first = self._waiting[0]
        return all(
            first.work_seconds < reached
            for thread, reached in enumerate(self._reached_seconds)
            if thread != first.thread
        )


class ParallelChains:
    """Runs tasks, one per thread at a time."""

    def __init__(
        self,
        effort: Effort,
        is_worth_reporting: Callable[[float], bool] = lambda _: False,
        report: Callable[[Assignment], None] = lambda _: None,
    ) -> None:
        self._effort, self._is_worth_reporting, self._report = effort, is_worth_reporting, report
        self.count = _THREADS if effort.reproducible else min(usable_cores(), _MAX_PARALLEL_CHAINS)

    def each(self, tasks: Iterable[Callable[[ChainThread], None]]) -> None:
        """Run all tasks in groups of as many as there are threads; the next group begins when all of one have ended.

        An error of a task ends the effort, so that the other threads stop soon, and is raised again.
        """
        waiting = iter(tasks)
        with ThreadPoolExecutor(self.count) as pool:
            while not self._effort.is_stopped and (batch := list(itertools.islice(waiting, self.count))):
                self._run(batch, pool)

    def _run(self, batch: list[Callable[[ChainThread], None]], pool: ThreadPoolExecutor) -> None:
        course = _Course(len(batch), self._is_worth_reporting, self._report)
        threads = [ChainThread(number, self._effort.fork(), course) for number in range(len(batch))]

        def drive(task: Callable[[ChainThread], None], thread: ChainThread) -> None:
            try:
                task(thread)
                thread.end()
            except BaseException:
                self._effort.stop()
                raise

        first, *others = [functools.partial(drive, task, thread) for task, thread in zip(batch, threads, strict=True)]
        running = [pool.submit(one) for one in others]
        try:
            first()
            for future in running:
                future.result()
        except BaseException:  # an interrupt reaches this thread alone
            self._effort.stop()
            raise
        self._effort.join(thread.effort for thread in threads)
