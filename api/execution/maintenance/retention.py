"""Removes what is older than the settings keep: hourly in the service, or at once from the command line."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from api.observability.metrics import WorkMetrics
from api.settings import Settings
from api.store.maintenance.retention import PRUNED, Cutoffs, Retention
from api.store.solves.idempotency import RETENTION_SECONDS

_DAY_SECONDS = 86_400.0
_EVERY_SECONDS = 3600.0
#: After a start there is more urgent work.
_FIRST_SECONDS = 60.0
#: A hundred plans are some megabytes: a writer waits for a moment.
_BATCH = 100
#: Those who wait for SQLite's lock ask for it every 0.1 s, and must get it between two batches.
_REST_SECONDS = 0.25

log = logging.getLogger(__name__)


def cutoffs(settings: Settings, *, now: float) -> Cutoffs:
    def before(days: float | None) -> float | None:
        return None if days is None else now - days * _DAY_SECONDS

    return Cutoffs(
        request_keys=now - RETENTION_SECONDS,
        solves=before(settings.retain_solves_days),
        events=before(settings.retain_events_days),
        plans=before(settings.retain_plans_days),
        audit=before(settings.retain_audit_days),
    )


def prune(
    store: Retention, before: Cutoffs, *, stopping: threading.Event | None = None, batch: int = _BATCH
) -> Mapping[str, int] | None:
    """Remove all that is old, batch by batch, and return how much; ``None`` if another process is at it."""
    stopping = stopping or threading.Event()
    with store.pruning() as is_mine:
        if not is_mine:
            return None
        removed = dict.fromkeys(PRUNED, 0)
        for kind in PRUNED:
            while not stopping.is_set():
                number = store.prune(kind, before, limit=batch)
                removed[kind] += number
                if number < batch:
                    break
                stopping.wait(_REST_SECONDS)
        return removed


class RetentionJob:
    """One thread that prunes now and then."""

    def __init__(
        self,
        store: Retention,
        settings: Settings,
        metrics: WorkMetrics,
        *,
        clock: Callable[[], float] = time.time,
        first_seconds: float = _FIRST_SECONDS,
        every_seconds: float = _EVERY_SECONDS,
    ) -> None:
        self._store, self._settings, self._metrics, self._clock = store, settings, metrics, clock
        self._first_seconds, self._every_seconds = first_seconds, every_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="retention", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the batch that is being removed."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def run(self) -> None:
        """Prune once; what was removed is counted and logged."""
        removed = prune(self._store, cutoffs(self._settings, now=self._clock()), stopping=self._stopping)
        if removed is None:
            return
        for kind, number in removed.items():
            self._metrics.pruned.labels(kind).inc(number)
        if any(removed.values()):
            numbers = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in removed.items() if number)
            log.info("removed what is older than it is kept: %s", numbers)

    def _work(self) -> None:
        wait_seconds = self._first_seconds
        while not self._stopping.wait(wait_seconds):
            wait_seconds = self._every_seconds
            try:
                self.run()
            except Exception:
                log.exception("what is old could not be removed; trying again later")
