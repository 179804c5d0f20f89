"""Runs queued solves in solver processes: claims, watches, keeps the best plan, kills, ends.

One thread for each solver process. The thread waits and watches; the work is done in the
process, which can be killed at any moment: when a solve overruns its limit, when somebody
cancels it, or by the operating system. Whatever happens to a process, only its own solve
ends, and the best plan that it had left behind is kept.
"""

import contextlib
import logging
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pebble import ProcessExpired
from sqlalchemy.exc import SQLAlchemyError

from api.json_input import parse_document
from api.process_slot import ProcessSlot
from api.schemas.spec import SpecDocument
from api.settings import Settings
from api.solve_results import STOPPED, progress_of, result_of, result_of_stopped
from api.solver_process import Incumbent, PlanFunction, SolveAnswer, SolveJob
from api.store.base import CANCELLED, FAILED, SUCCEEDED, Json, PlanRecord, SolveRecord, Store

_POLL_SECONDS = 0.05
_IDLE_SECONDS = 5.0
_RETRY_SECONDS = 1.0
_MAX_ATTEMPTS = 2

Value = TypeVar("Value")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Run:
    """A solve while it runs."""

    solve: SolveRecord
    incumbent_file: Path
    best: Incumbent | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


class SolverEngine:
    """Takes solves from the store and ends them. Thread safe."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        plan: PlanFunction,
        *,
        on_end: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._plan, self._on_end, self._clock = store, settings, plan, on_end, clock
        self._wake = threading.Condition()
        self._num_wakes = 0
        self._stopping = threading.Event()
        self._runs: dict[str, _Run] = {}
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Queue again what a dead process left running, and begin."""
        again = self._store.requeue_running()
        if again:
            log.warning("%d solves that were interrupted are queued again", again)
        for number in range(self._settings.solver_processes):
            thread = threading.Thread(target=self._work, name=f"solver-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Kill the solver processes; their solves run again at the next start."""
        self._stopping.set()
        self.wake()
        for thread in self._threads:
            thread.join()

    @property
    def is_running(self) -> bool:
        """Whether every thread works."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def wake(self) -> None:
        """Say that a solve was queued."""
        with self._wake:
            self._num_wakes += 1
            self._wake.notify_all()

    def cancel(self, solve_id: str) -> None:
        """Stop a solve, where it runs."""
        run = self._runs.get(solve_id)
        if run is not None:
            run.cancelled.set()

    def _work(self) -> None:
        """Life of one thread: one solve after another, in a process of its own."""
        with ProcessSlot(self._settings.solver_memory_bytes) as process, tempfile.TemporaryDirectory() as folder:
            while not self._stopping.is_set():
                num_wakes = self._num_wakes
                solve = self._retried(lambda: self._store.claim(now=self._clock()))
                if solve is not None:
                    self._run(_Run(solve=solve, incumbent_file=Path(folder) / f"{solve.id}.plan"), process)
                    continue
                with self._wake:
                    if self._num_wakes == num_wakes and not self._stopping.is_set():
                        self._wake.wait(_IDLE_SECONDS)

    def _retried(self, operation: Callable[[], Value]) -> Value | None:
        """Do something with the store, as often as it takes; ``None`` where the server stops first.

        The disk may be full or the file locked for a while: an accepted solve must survive that.
        """
        while True:
            try:
                return operation()
            except SQLAlchemyError:
                log.exception("the store failed; trying again")
                if self._stopping.wait(_RETRY_SECONDS):
                    return None

    def _run(self, run: _Run, process: ProcessSlot) -> None:
        """Run one solve to its end."""
        solve_id = run.solve.id
        self._runs[solve_id] = run
        try:
            # Somebody may have cancelled it between the claim and the line above.
            stored = self._retried(lambda: self._store.solve(solve_id))
            if stored is not None and stored.cancel_requested:
                run.cancelled.set()
            answer, stop = self._attempt(run, process)
            if stop == "server":
                return
            self._end(run, answer, stop)
        finally:
            self._runs.pop(solve_id, None)
            run.incumbent_file.unlink(missing_ok=True)
        self._on_end(solve_id)

    def _attempt(self, run: _Run, process: ProcessSlot) -> tuple[SolveAnswer | None, str]:
        """Return the answer, or why there is none: "time", "killed", "cancelled" or "server"."""
        spec_bytes = self._retried(lambda: self._store.spec(run.solve.spec_digest))
        if spec_bytes is None:
            return None, "server"
        job = SolveJob(
            spec_bytes=spec_bytes,
            assumptions=[{key: str(value) for key, value in item.items()} for item in run.solve.assumptions],
            incumbent_file=run.incumbent_file,
            plan=self._plan,
        )
        limit_seconds = self._limit_seconds(spec_bytes)
        for _ in range(_MAX_ATTEMPTS):
            future = process.schedule(job, limit_seconds)
            stop = self._watch(run, future)
            if stop:
                return None, stop
            try:
                return future.result(), ""
            except FutureTimeoutError:
                return None, "time"
            except ProcessExpired as error:
                log.warning("solve %s: its process ended with code %s", run.solve.id, error.exitcode)
                return None, "killed"
            except (BrokenExecutor, CancelledError):
                # The process died before the solve began: this says nothing about the solve.
                process.discard()
            except Exception:
                log.exception("solve %s raised", run.solve.id)
                return None, "defect"
        return None, "killed"

    def _limit_seconds(self, spec_bytes: bytes) -> float:
        """When a solve is stopped by force: its own limit, preparation by size, and some grace."""
        spec = parse_document(spec_bytes, SpecDocument)
        settings = self._settings
        preparation_seconds = settings.solver_preparation_seconds_per_table * len(spec.model.tables)
        return spec.solver.time_limit_seconds + preparation_seconds + settings.solver_grace_seconds

    def _watch(self, run: _Run, future: "Future[SolveAnswer]") -> str:
        """Wait for the end of a solve, keep improvements; return why it was cut off, if it was."""
        seen = 0
        stop = ""
        while not stop:
            done, _ = wait([future], timeout=_POLL_SECONDS)
            with contextlib.suppress(FileNotFoundError):
                changed = run.incumbent_file.stat().st_mtime_ns
                if changed != seen:
                    seen = changed
                    self._improve(run, Incumbent.from_bytes(run.incumbent_file.read_bytes()))
            if done:
                return ""
            stop = "server" if self._stopping.is_set() else "cancelled" if run.cancelled.is_set() else ""
        future.cancel()
        return stop

    def _improve(self, run: _Run, incumbent: Incumbent) -> None:
        run.best = incumbent
        try:
            self._store.keep_incumbent(run.solve.id, document=incumbent.document, progress=progress_of(incumbent))
        except SQLAlchemyError:
            log.exception("the store failed; the plan is kept in memory")

    def _end(self, run: _Run, answer: SolveAnswer | None, stop: str) -> None:
        """Write down how a solve ended."""
        best = run.best if answer is None else answer.best
        if answer is not None and answer.refusal is not None:
            self._finish(run, FAILED, error=answer.refusal)
        elif answer is not None:
            result = result_of(best, answer.reason, answer.limit, answer.detail, answer.shortfalls)
            result["lower_bound_seconds"] = answer.lower_bound_seconds
            self._finish(run, SUCCEEDED, result=result, best=best)
        elif best is None and stop != "cancelled":
            self._finish(run, FAILED, error=STOPPED[stop])
        else:
            state = CANCELLED if stop == "cancelled" else SUCCEEDED
            self._finish(run, state, result=result_of_stopped(best, stop), best=best)

    def _finish(
        self,
        run: _Run,
        state: str,
        *,
        result: Json | None = None,
        error: Json | None = None,
        best: Incumbent | None = None,
    ) -> None:
        now = self._clock()
        plan = None if best is None else PlanRecord(digest=best.digest, canonical=best.document, created_at=now)
        progress = None if best is None else progress_of(best)
        self._retried(
            lambda: self._store.finish(
                run.solve.id, state=state, now=now, result=result, error=error, plan=plan, progress=progress
            )
        )
