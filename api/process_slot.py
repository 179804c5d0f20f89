"""One place for a process that works, filled again whenever the process is gone."""

import contextlib
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from typing import Any, TypeVar

from pebble import ProcessPool

from api.child_process import start_process, warm_up

#: Imported once, by the process that all others are forked from: they have it without loading it.
_LOADED = "api.process_parent"
#: Starts that process, which dies with the *thread* that has started it (prctl(2), PR_SET_PDEATHSIG): this one lives as
#: long as the server.
_KEEPER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-keeper")
#: Waits until that process has loaded, so that nobody else need.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-starter")

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class _Process(ForkServerProcess):
    """A process whose parent is started by the keeper, also where the parent is gone and started again."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        _KEEPER.submit(ensure_running).result()
        return ForkServerProcess._Popen(process_obj)  # noqa: SLF001


class _Context(ForkServerContext):
    """What makes such processes."""

    Process = _Process


class ProcessSlot:
    """One process, made again whenever it is gone."""

    def __init__(self, memory_bytes: int | None, start: Callable[[int | None], None] = start_process) -> None:
        self._memory_bytes, self._start = memory_bytes, start
        self._pool: ProcessPool | None = None
        self._started: Future[object] | None = None

    def __enter__(self) -> "ProcessSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def warm_up(self) -> None:
        """Have the process started, so that the first job finds it ready; does not wait for it."""
        self._ready_pool()

    def schedule(self, work: Callable[[Job], Answer], job: Job, limit_seconds: float | None) -> "Future[Answer]":
        """Run a function at the top of a module on a job; the process is killed at the limit, where there is one.

        Raises ``BrokenExecutor`` where no process could be had, which says nothing about the job.
        """
        pool, started = self._ready_pool()
        try:
            started.result()
            future: Future[Answer] = pool.schedule(work, args=[job], timeout=limit_seconds)
        except (OSError, EOFError, RuntimeError) as error:
            raise BrokenExecutor(f"no process could be had: {error}") from error
        return future

    def discard(self) -> None:
        """Kill the process."""
        pool, started = self._pool, self._started
        self._pool = self._started = None
        if pool is not None and started is not None:
            with contextlib.suppress(Exception):
                started.result()
            pool.stop()
            pool.join()

    def _ready_pool(self) -> tuple[ProcessPool, "Future[object]"]:
        """Return a pool, and when it has started; one whose idle process was killed takes no work any more."""
        if self._pool is not None and self._has_failed():
            self.discard()
        if self._pool is None or self._started is None:
            context = _Context()
            context.set_forkserver_preload([_LOADED])
            self._pool = ProcessPool(
                max_workers=1, context=context, initializer=self._start, initargs=(self._memory_bytes,)
            )
            # The pool starts its process with its first work.
            self._started = _STARTER.submit(self._pool.schedule, warm_up)
        return self._pool, self._started

    def _has_failed(self) -> bool:
        """Whether the pool takes no work; of one that starts it is not known yet."""
        assert self._pool is not None
        assert self._started is not None
        if not self._started.done():
            return False
        return self._started.exception() is not None or not self._pool.active
