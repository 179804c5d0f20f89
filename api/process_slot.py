"""One place for a process that works, filled again whenever the process is gone."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from pebble import ProcessPool

from api.child_process import start_process, warm_up

#: Starts processes. They die with the *thread* that has started them (prctl(2), PR_SET_PDEATHSIG), and a thread that
#: asks for a solve may be gone before the solve is over; this one lives as long as the server.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-starter")

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class ProcessSlot:
    """One process, made again whenever it is gone."""

    def __init__(self, memory_bytes: int | None, start: Callable[[int, int | None], None] = start_process) -> None:
        self._memory_bytes, self._start = memory_bytes, start
        self._pool: ProcessPool | None = None

    def __enter__(self) -> "ProcessSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def warm_up(self) -> None:
        """Start the process, so that the first job finds it ready."""
        self._ready_pool()

    def schedule(self, work: Callable[[Job], Answer], job: Job, limit_seconds: float | None) -> "Future[Answer]":
        """Run a function at the top of a module on a job; the process is killed at the limit, where there is one."""
        future: Future[Answer] = self._ready_pool().schedule(work, args=[job], timeout=limit_seconds)
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
                initializer=self._start,
                initargs=(os.getpid(), self._memory_bytes),
            )
            # The pool starts its process with its first work.
            _STARTER.submit(self._pool.schedule, warm_up).result()
        return self._pool
