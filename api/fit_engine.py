"""Fits learned models in the background: one at a time, in a process that can be killed.

A fit that the end of the server cut off begins again at the next start; one that was cut off twice has failed.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError

from pebble import ProcessExpired

from api.fit_process import FitAnswer, FitFunction, FitJob, run_fit
from api.process_slot import ProcessSlot
from api.retrying import retried
from api.settings import Settings
from api.store.base import Store
from api.store.models import FITTING, ModelRecord
from api.stored_models import model_id

MAX_ATTEMPTS = 2
_POLL_SECONDS = 0.05
_IDLE_SECONDS = 5.0

CANCELLED = {"code": "cancelled", "message": "somebody stopped the fit"}
KILLED = {
    "code": "killed",
    "message": "the process of the fit was ended from outside",
    "hint": "it may have needed more memory than there is: fit to fewer rows",
}
DEFECT = {"code": "internal", "message": "the fit failed; the log of the server says how"}
GONE = {"code": "unknown-measurements", "message": "measurements of the fit are not kept any more"}

log = logging.getLogger(__name__)


class FitEngine:
    """Takes fits from the store and ends them. Thread safe."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        fit: FitFunction,
        *,
        on_end: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._fit, self._on_end, self._clock = store, settings, fit, on_end, clock
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._running: str | None = None  # id of the fit that is begun
        self._cancelled = threading.Event()  # it is to be stopped
        self._thread = threading.Thread(target=self._work, name="fits", daemon=True)

    def start(self) -> None:
        """Take up what a dead process left, and begin."""
        again = self._store.release_fits()
        if again:
            log.warning("%d fits that were interrupted begin again", again)
        self._thread.start()

    def stop(self) -> None:
        """Kill the process; its fit begins again at the next start."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    @property
    def is_running(self) -> bool:
        """Whether the thread works."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """Say that there is a fit."""
        self._wake.set()

    def cancel(self, record: ModelRecord) -> None:
        """Stop a fit, whether it waits or runs."""
        self._finish(record, error=CANCELLED)
        if self._running == model_id(record):
            self._cancelled.set()

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            record = retried(
                lambda: self._store.claim_fit(max_attempts=MAX_ATTEMPTS, now=self._clock()), self._stopping
            )
            if record is None:
                self._wake.wait(_IDLE_SECONDS)
            else:
                self._run(record)

    def _run(self, record: ModelRecord) -> None:
        """Run one fit to its end, in a process of its own, so that what it imported is gone with it."""
        self._running = model_id(record)  # before the line below: a cancel of the last fit must not stop this one
        self._cancelled.clear()
        # Somebody may have cancelled it between the claim and the lines above.
        stored = retried(lambda: self._store.model(record.name, record.version), self._stopping)
        if stored is None or stored.state != FITTING:
            return
        try:
            with ProcessSlot(self._settings.fit_memory_bytes) as process:
                answer = self._answer(record, process)
        except Exception:
            log.exception("fit %s failed", model_id(record))
            answer = FitAnswer(error=DEFECT)
        if answer is not None:
            retried(lambda: self._finish(record, answer=answer), self._stopping)

    def _answer(self, record: ModelRecord, process: ProcessSlot) -> FitAnswer | None:
        """Return what became of a fit; ``None`` where the server stops first."""
        request = record.request or {}
        digests, seed = request["measurements"], request["seed"]
        assert isinstance(digests, list)
        assert isinstance(seed, int)
        batches = retried(lambda: [self._store.measurements(digest) for digest in digests], self._stopping)
        if batches is None:
            return None
        found = [batch for batch in batches if batch is not None]
        if len(found) < len(batches):
            return FitAnswer(error=GONE)
        job = FitJob(batches=found, name=record.name, seed=seed, fit=self._fit)
        limit_seconds = self._settings.fit_limit_seconds
        future = process.schedule(run_fit, job, limit_seconds)
        if not self._watch(future):
            return None if self._stopping.is_set() else FitAnswer(error=CANCELLED)
        try:
            return future.result()
        except FutureTimeoutError:
            message = f"the fit took longer than {limit_seconds:g} s (SHARDPLAN_FIT_LIMIT_SECONDS)"
            return FitAnswer(error={"code": "time-limit", "message": message, "hint": "fit it to fewer rows"})
        except (ProcessExpired, BrokenExecutor, CancelledError):
            return FitAnswer(error=KILLED)

    def _watch(self, future: "Future[FitAnswer]") -> bool:
        """Wait for the end of a fit; False where it is stopped."""
        while not wait([future], timeout=_POLL_SECONDS).done:
            if self._stopping.is_set() or self._cancelled.is_set():
                future.cancel()
                return False
        return True

    def _finish(
        self, record: ModelRecord, *, answer: FitAnswer | None = None, error: dict[str, str] | None = None
    ) -> None:
        """Write down how a fit ended."""
        answer = answer or FitAnswer(error=error)
        self._store.finish_fit(
            record.name,
            record.version,
            now=self._clock(),
            digest=answer.digest or None,
            canonical=answer.canonical,
            device=answer.device,
            figures=answer.figures,
            error=answer.error,
        )
        self._on_end(model_id(record))
