"""One place for a process that works, filled again whenever the process is gone.

Every job comes to an end, whatever becomes of its process: what the pool does not see is seen to here.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, InvalidStateError, ThreadPoolExecutor, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from typing import Any, TypeVar

from pebble import ProcessPool

from api.execution.processes.child import start_process, warm_up

#: Imported once, by the process that all others are forked from: they have it without loading it.
_LOADED = "api.cli.service.forkserver_preload"
#: Starts that process, which dies with the *thread* that has started it (prctl(2), PR_SET_PDEATHSIG): this one lives as
#: long as the server.
_KEEPER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-keeper")
#: Waits until that process has loaded, so that no later process need.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="process-starter")
#: Until a process takes up a job that it was given. One that talks to a Ray cluster connects to it first.
_BEGIN_SECONDS = 120.0
_LOOK_SECONDS = 0.02
#: Between looks at a job that has not begun. The pool is silent of one that came while its process was lost.
_WATCH_SECONDS = 0.5
#: Until a process that overruns its limit is killed. What stopped while it held the lock of its pool cannot be.
_KILL_SECONDS = 10.0
#: What multiprocessing says of a process where it has not seen how it ended.
_UNKNOWN_CODE = 255

Given = TypeVar("Given")
Answer = TypeVar("Answer")


class _Process(ForkServerProcess):
    """A process whose parent is started by the keeper, also where the parent is gone and started again."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        _KEEPER.submit(ensure_running).result()
        return ForkServerProcess._Popen(process_obj)  # noqa: SLF001

    @property
    def exitcode(self) -> int | None:
        """How the process ended: never well, as it is not asked to end; of one that did the pool would not speak."""
        code = super().exitcode
        return _UNKNOWN_CODE if code == 0 else code


class _Context(ForkServerContext):
    """What makes such processes."""

    Process = _Process


class ProcessSlot:
    """One process, made again whenever it is gone. Thread safe."""

    def __init__(self, memory_bytes: int | None, start: Callable[[int | None], None] = start_process) -> None:
        self._memory_bytes, self._start = memory_bytes, start
        self._lock = threading.Lock()
        self._pool: _Pool | None = None

    def __enter__(self) -> "ProcessSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def warm_up(self) -> None:
        """Have the process started, so that the first job finds it ready; does not wait for it."""
        self._ready_pool()

    def wait_until_ready(self, stopping: threading.Event) -> None:
        """Wait until a job would begin at once; no longer than a process may take, and not once all is to stop.

        If no process can be had, the job says so.
        """
        deadline = time.monotonic() + _BEGIN_SECONDS
        with contextlib.suppress(OSError, EOFError, RuntimeError):
            pool = self._ready_pool()
            while not pool.has_settled() and time.monotonic() < deadline and not stopping.wait(_LOOK_SECONDS):
                pass

    def schedule(self, work: Callable[[Given], Answer], job: Given, limit_seconds: float | None) -> "Future[Answer]":
        """Run a function at the top of a module on a job; the process is killed at the limit, where there is one.

        Raises ``BrokenExecutor`` if no process could be had, which says nothing about the job; the future does so
        where the process was lost before it had begun, or discarded.
        """
        try:
            return self._ready_pool().schedule(work, job, limit_seconds)
        except (OSError, EOFError, RuntimeError, CancelledError) as error:
            raise BrokenExecutor(f"no process could be had: {error}") from error

    def discard(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop(BrokenExecutor("the process was discarded"))

    def _ready_pool(self) -> "_Pool":
        """Return a pool; one whose idle process was killed takes no work any more."""
        with self._lock:
            before = self._pool
            if before is None or before.has_failed():
                self._pool = _Pool(self._memory_bytes, self._start)
            pool = self._pool
            assert pool is not None
        if before is not None and before is not pool:
            before.stop(BrokenExecutor("the process had failed"))
        return pool


class _Pool:
    """One process, which starts in the background, and the next one where it dies of its work."""

    def __init__(self, memory_bytes: int | None, start: Callable[[int | None], None]) -> None:
        context = _Context()
        context.set_forkserver_preload([_LOADED])
        self._pool = ProcessPool(max_workers=1, context=context, initializer=start, initargs=(memory_bytes,))
        # The pool starts its process with its first work.
        self._started = _STARTER.submit(self._pool.schedule, warm_up)
        self._lock = threading.Lock()
        self._jobs: set[Job[Any]] = set()
        self._is_stopped = False

    def has_settled(self) -> bool:
        """Whether it need not be waited for: its process has done its first work, or there is none."""
        if self._is_stopped:
            return True
        return self._started.done() and (self._started.exception() is not None or self._started.result().done())

    def has_failed(self) -> bool:
        """Whether it takes no work; of one that starts it is not known yet."""
        if self._is_stopped or not self._started.done():
            return self._is_stopped
        return self._started.exception() is not None or not self._pool.active

    def schedule(self, work: Callable[[Given], Answer], job: Given, limit_seconds: float | None) -> "Job[Answer]":
        """Run a job. Raises ``OSError``, ``EOFError``, ``RuntimeError`` or ``CancelledError`` without a process."""
        self._started.result(timeout=_BEGIN_SECONDS)
        with self._lock:
            if self._is_stopped:
                raise RuntimeError("it was discarded")
            begun = Job[Answer](self._pool.schedule(work, args=[job], timeout=limit_seconds))
            self._jobs.add(begun)
        begun.add_done_callback(self._forget)
        self._watch(begun, limit_seconds, time.monotonic() + _BEGIN_SECONDS)
        return begun

    def stop(self, error: Exception) -> None:
        """Kill the process; an error is what becomes of its jobs."""
        with self._lock:
            was_stopped, self._is_stopped = self._is_stopped, True
            jobs = tuple(self._jobs)
        for job in jobs:
            job.fail(error)
        if not was_stopped and not self._started.cancel():
            wait([self._started], timeout=_BEGIN_SECONDS)
            # At once, or when it has started after all.
            self._started.add_done_callback(self._end)

    def _end(self, _started: "Future[object]") -> None:
        self._pool.stop()
        self._pool.join()

    def _forget(self, job: "Future[Any]") -> None:
        with self._lock:
            self._jobs.discard(job)

    def _after(self, seconds: float, job: "Job[Any]", look: Callable[[], None]) -> None:
        """Look at a job after a while, unless it has ended by then."""
        timer = threading.Timer(seconds, look)
        timer.daemon = True
        timer.start()
        job.add_done_callback(lambda _: timer.cancel())

    def _watch(self, job: "Job[Any]", limit_seconds: float | None, deadline: float) -> None:
        self._after(_WATCH_SECONDS, job, lambda: self._expect_begin(job, limit_seconds, deadline))

    def _expect_begin(self, job: "Job[Any]", limit_seconds: float | None, deadline: float) -> None:
        """The pool counts the limit from the begin: without one it would wait for ever."""
        if job.running() or job.done():
            if limit_seconds is not None:
                late = TimeoutError(f"the process could not be stopped after {limit_seconds:g} s")
                self._after(limit_seconds + _KILL_SECONDS, job, lambda: self.stop(late))
        elif not self._pool.active:
            self.stop(BrokenExecutor("the process was lost before it had begun"))
        elif time.monotonic() >= deadline:
            self.stop(BrokenExecutor(f"the process did not begin in {_BEGIN_SECONDS:g} s"))
        else:
            self._watch(job, limit_seconds, deadline)


class Job(Future[Answer]):
    """What becomes of a job: what the future of its work says, unless somebody else has said so before."""

    def __init__(
        self, work: "Future[Answer]", error_of: Callable[[BaseException], BaseException] = lambda error: error
    ) -> None:
        """``error_of`` turns an error of the work into that of the job."""
        super().__init__()
        self._work, self._error_of = work, error_of
        work.add_done_callback(self._set_answer)

    def cancel(self) -> bool:
        """Have the process killed; the job ends with ``CancelledError``."""
        return self._work.cancel()

    def running(self) -> bool:
        """Whether the process has taken it up, and it has not ended."""
        return self._work.running()

    def fail(self, error: Exception) -> None:
        """End it, unless it has ended."""
        with contextlib.suppress(InvalidStateError):
            self.set_exception(error)

    def _set_answer(self, work: "Future[Answer]") -> None:
        if work.cancelled():
            self.fail(CancelledError())
        elif (error := work.exception()) is None:
            with contextlib.suppress(InvalidStateError):
                self.set_result(work.result())
        else:
            error = self._error_of(error)
            # What ends a process that raises it must not end the thread here that hears of it.
            self.fail(error if isinstance(error, Exception) else RuntimeError(f"the job raised {error!r}"))
