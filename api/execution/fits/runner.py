"""Fits one learned model in a process that can be killed.

A fit that the end of the server cut off begins again at the next start; one that was cut off twice has failed.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict

from pebble import ProcessExpired
from sqlalchemy.exc import SQLAlchemyError

from api.execution.base import Interrupted
from api.execution.maintenance.retry import retried
from api.execution.processes.fit import FitAnswer, FitFunction, FitJob, run_fit
from api.execution.processes.slot import ProcessSlot
from api.observability.metrics import WorkMetrics
from api.settings import Settings
from api.store.database import Database
from api.store.models.models import FAILED, FITTING, READY, ModelRecord, fit_id, model_id, tenant_and_model

MAX_ATTEMPTS = 2
_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.3

CANCELLED = {"code": "cancelled", "message": "somebody stopped the fit"}
KILLED = {
    "code": "killed",
    "message": "the process of the fit was ended from outside",
    "hint": "it may have needed more memory than there is: fit to fewer rows",
}
DEFECT = {"code": "internal", "message": "the fit failed; the log of the server says how"}
GONE = {"code": "unknown-measurements", "message": "measurements of the fit are not kept any more"}

log = logging.getLogger(__name__)


class FitRunner:
    """Fulfils ``api.execution.base.Runner`` for fits, one at a time; a fit has the id of its tenant and model."""

    def __init__(
        self,
        store: Database,
        settings: Settings,
        fit: FitFunction,
        *,
        on_end: Callable[[str], None],
        metrics: WorkMetrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._fit, self._on_end, self._clock = store, settings, fit, on_end, clock
        self._metrics = metrics
        self._stopping = threading.Event()

    @property
    def num_slots(self) -> int:
        return min(1, self._settings.solver_processes)

    def stop(self) -> None:
        """Kill what runs; it begins again, here after the next start or elsewhere."""
        self._stopping.set()

    def cancel(self, record: ModelRecord) -> None:
        """End a fit, whether it waits or runs; where it runs, its process is killed soon."""
        self._finish(record, FitAnswer(error=CANCELLED), attempt=None)

    def run(self, work_id: str) -> None:
        tenant, model = tenant_and_model(work_id)
        name, _, version = model.partition("@")
        store = self._store.for_tenant(tenant)
        record = retried(
            lambda: store.begin_fit(name, int(version), max_attempts=MAX_ATTEMPTS, now=self._clock()),
            self._stopping,
        )
        if record is not None:
            self._run(record)
        if self._stopping.is_set():
            # Where it has ended all the same, the next attempt finds so.
            raise Interrupted
        self._on_end(work_id)

    def _run(self, record: ModelRecord) -> None:
        """Run one fit to its end, in a process of its own, so that what it imported is gone with it."""
        began = time.monotonic()
        try:
            with ProcessSlot(self._settings.fit_memory_bytes) as process:
                answer = self._answer(record, process)
        except Exception:
            log.exception("the fit failed", extra={"fit_id": model_id(record)})
            answer = FitAnswer(error=DEFECT)
        if answer is not None and retried(
            lambda: self._finish(record, answer, attempt=record.attempts), self._stopping
        ):
            state = READY if answer.error is None else FAILED
            self._metrics.fit_seconds.labels(state).observe(time.monotonic() - began)

    def _answer(self, record: ModelRecord, process: ProcessSlot) -> FitAnswer | None:
        """Return what became of a fit; ``None`` if the server stops first, or somebody cancelled it."""
        request = record.request or {}
        digests, seed = request["measurements"], request["seed"]
        assert isinstance(digests, list)
        assert isinstance(seed, int)
        store = self._store.for_tenant(record.tenant)
        batches = retried(lambda: [store.measurements(digest) for digest in digests], self._stopping)
        if batches is None:
            return None
        found = [batch for batch in batches if batch is not None]
        if len(found) < len(batches):
            return FitAnswer(error=GONE)
        job = FitJob(batches=found, name=record.name, seed=seed, fit=self._fit)
        limit_seconds = self._settings.fit_limit_seconds
        try:
            future = process.schedule(run_fit, job, limit_seconds)
            if not self._watch(record, future):
                return None
            return future.result()
        except FutureTimeoutError:
            message = f"the fit took longer than {limit_seconds:g} s (SHARDPLAN_FIT_LIMIT_SECONDS)"
            return FitAnswer(error={"code": "time-limit", "message": message, "hint": "fit it to fewer rows"})
        except (ProcessExpired, BrokenExecutor, CancelledError):
            return FitAnswer(error=KILLED)

    def _watch(self, record: ModelRecord, future: "Future[FitAnswer]") -> bool:
        """Wait for the end of a fit; False if it is stopped."""
        looked = time.monotonic()
        while not wait([future], timeout=_POLL_SECONDS).done:
            is_wanted = not self._stopping.is_set()
            if is_wanted and time.monotonic() - looked > _LOOK_SECONDS:
                is_wanted = self._is_wanted(record)
                looked = time.monotonic()
            if not is_wanted:
                future.cancel()
                return False
        return True

    def _is_wanted(self, record: ModelRecord) -> bool:
        """Whether a fit was neither ended nor begun again, here or elsewhere; True if the store cannot say."""
        try:
            stored = self._store.for_tenant(record.tenant).model(record.name, record.version)
        except SQLAlchemyError:
            return True
        return stored is not None and stored.state == FITTING and stored.attempts == record.attempts

    def _finish(self, record: ModelRecord, answer: FitAnswer, *, attempt: int | None) -> bool:
        """Store how a fit ended; False if it had ended already, or a later attempt was begun."""
        has_ended = self._store.for_tenant(record.tenant).finish_fit(
            record.name, record.version, now=self._clock(), attempt=attempt, **asdict(answer)
        )
        self._on_end(fit_id(record.tenant, model_id(record)))
        return has_ended
