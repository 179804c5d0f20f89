"""One place for a solver process, filled again whenever the process is gone."""

import multiprocessing
import os
from concurrent.futures import Future

from pebble import ProcessPool

from api.solver_process import SolveAnswer, SolveJob, run_solve, start_process, warm_up


class ProcessSlot:
    """One solver process, made again whenever it is gone."""

    def __init__(self, memory_bytes: int | None) -> None:
        self._memory_bytes = memory_bytes
        self._pool: ProcessPool | None = None

    def __enter__(self) -> "ProcessSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def warm_up(self) -> None:
        """Start the process, so that the first job finds it ready."""
        self._ready_pool().schedule(warm_up)

    def schedule(self, job: SolveJob, limit_seconds: float) -> "Future[SolveAnswer]":
        """Run a job; the process is killed at the limit."""
        future: Future[SolveAnswer] = self._ready_pool().schedule(run_solve, args=[job], timeout=limit_seconds)
        return future

    def discard(self) -> None:
        """Kill the process."""
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
            self._pool = None

    def _ready_pool(self) -> ProcessPool:
        """Return a pool that takes work; one whose idle process was killed does not any more."""
        if self._pool is not None and not self._pool.active:
            self.discard()
        if self._pool is None:
            self._pool = ProcessPool(
                max_workers=1,
                context=multiprocessing.get_context("spawn"),
                initializer=start_process,
                initargs=(os.getpid(), self._memory_bytes),
            )
        return self._pool
