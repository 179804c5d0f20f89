"""Chains side by side: the cores that a search by the clock may use.

A reproducible search has one lane whatever the machine: what it finds must not depend on how many cores there are. The
inner loops run without the interpreter lock, so that threads are enough.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from planner.solver.machine import usable_cores
from planner.solver.partitioners.base import Effort

#: With more, chains learn too little from each other.
_MAX_PARALLEL_CHAINS = 4


class ParallelChains:
    """Runs tasks, one per lane at a time."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self.count = 1 if effort.reproducible else min(usable_cores(), _MAX_PARALLEL_CHAINS)

    def each(self, tasks: Iterable[Callable[[], None]]) -> None:
        """Run all tasks, begun in their order; the next one is asked for when a lane is free.

        An error of a task ends the effort, so that the other lanes stop soon, and is raised again.
        """
        if self.count == 1:
            for task in tasks:
                task()
            return
        waiting, asking = iter(tasks), threading.Lock()

        def drive() -> None:
            try:
                while not self._effort.is_stopped:
                    with asking:
                        task = next(waiting, None)
                    if task is None:
                        return
                    task()
            except BaseException:
                self._effort.stop()
                raise

        with ThreadPoolExecutor(self.count) as pool:
            driven = [pool.submit(drive) for _ in range(self.count)]
            try:
                for future in driven:
                    future.result()
            except BaseException:  # an interrupt reaches this thread alone
                self._effort.stop()
                raise
