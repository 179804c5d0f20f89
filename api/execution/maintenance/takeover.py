"""Keeps engine and store together: who lives, whose work is taken over, what was lost on the way.

Where executors share a database, each says every two seconds that it lives. One that has been silent for long is
taken for dead by the first that notices: its solves are queued again, its works handed to others. Should it wake up,
what it writes is left aside, for another attempt has begun.
"""

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from api.execution.base import FITS, SOLVES, STUDIES, EngineUnavailable, Work, fields_of
from api.execution.executor_identity import Identity
from api.execution.queue.dbos import DbosEngine
from api.observability.metrics import WorkMetrics
from api.store.database import Database
from api.store.models.models import fit_id, model_id

BEAT_SECONDS = 2.0
#: Five beats that did not come: long for a busy machine, short for thousands of ranks that wait.
SILENT_SECONDS = 10.0
_SWEEP_SECONDS = 10.0
_FORGET_SECONDS = 3600.0
_RETENTION_SECONDS = 24 * 3600.0

log = logging.getLogger(__name__)


class EngineWatch:
    """One thread that looks after the engine of this process."""

    def __init__(
        self,
        store: Database,
        engine: DbosEngine,
        identity: Identity,
        metrics: WorkMetrics,
        *,
        is_shared: bool,
        beat_seconds: float = BEAT_SECONDS,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        """``is_shared`` says that other executors may use the database."""
        self._store, self._engine, self._identity, self._metrics = store, engine, identity, metrics
        self._is_shared = is_shared
        self._beat_seconds, self._silent_seconds = beat_seconds, silent_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="engine-watch", daemon=True)

    def enter(self) -> None:
        """Say that this executor lives now, and queue what an earlier life of it left running.

        Where no other executor can be, that is whatever is said to run: the file with this one's id may be lost, or
        was not copied with the database.

        Raises
        ------
        EngineUnavailable
            Another process with the same id lives: its data folder was copied.
        """
        if self._is_shared:
            self._wait_for_earlier_life()
            self._store.enter_executor(self._identity.id, life=self._identity.life, host=self._identity.host)
        left_by = self._identity.id if self._is_shared else None
        self._metrics.solves_taken_over.inc(self._store.release_solves(left_by))

    def start(self) -> None:
        """Begin to watch, once the engine runs."""
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def leave(self) -> None:
        """Let others take over at once, once nothing runs here any more."""
        try:
            self._store.release_solves(self._identity.id)
            if self._is_shared:
                self._store.silence_executor(self._identity.id, life=self._identity.life)
        except SQLAlchemyError:
            log.exception("the store failed; others take over when they have heard nothing for a while")

    def _wait_for_earlier_life(self) -> None:
        """Return once an earlier life of this id is seen to be over: it was silent, or falls silent now."""
        first = self._life_of_id()
        if first is None or first >= self._silent_seconds:
            return
        # A beat makes a silence shorter; without one it grows by what we waited.
        begin = time.monotonic()
        while (waited := time.monotonic() - begin) < 2.5 * self._beat_seconds:
            time.sleep(self._beat_seconds / 4)
            now = self._life_of_id()
            if now is None:
                return
            if now < first + waited - self._beat_seconds / 4:
                raise EngineUnavailable(
                    f"a process of the same executor, {self._identity.id}, runs elsewhere; "
                    "delete the file executor-id of a data folder that was copied"
                )

    def _life_of_id(self) -> float | None:
        """Return for how long nothing was heard of this id."""
        return next((item.silent_seconds for item in self._store.executors() if item.id == self._identity.id), None)

    def _work(self) -> None:
        due = {self._sweep: time.monotonic() + _SWEEP_SECONDS, self._forget: time.monotonic() + _FORGET_SECONDS}
        every = {self._sweep: _SWEEP_SECONDS, self._forget: _FORGET_SECONDS}
        self._tried(self._sweep)
        while not self._stopping.wait(self._beat_seconds):
            if self._is_shared:
                self._tried(self._beat)
                self._tried(self._take_over)
            for action, when in due.items():
                if time.monotonic() >= when:
                    self._tried(action)
                    due[action] = time.monotonic() + every[action]

    def _tried(self, action: Callable[[], None]) -> None:
        """Do something; what fails is logged and done again later, and nothing is done any more by one that stops."""
        if self._stopping.is_set():  # a database that is gone may have taken half a minute to say so
            return
        try:
            action()
        except Exception:
            log.exception("the engine could not be looked after; trying again")

    def _beat(self) -> None:
        mine = self._identity
        if not self._store.beat(mine.id, life=mine.life):
            log.warning("taken for dead after a long silence; going on", extra={"executor_id": mine.id})
            self._store.enter_executor(mine.id, life=mine.life, host=mine.host)

    def _take_over(self) -> None:
        """Hand out the work of executors that have been silent for long."""
        for gone in self._store.executors():
            if gone.silent_seconds >= self._silent_seconds and gone.id != self._identity.id:
                num_solves = self._store.release_solves(gone.id)
                self._metrics.solves_taken_over.inc(num_solves)
                num_works = self._engine.recover(gone.id)
                # Last, so that it is done again should this process die on the way; twice is harmless.
                if self._store.end_executor(gone.id, life=gone.life):
                    log.warning(
                        "an executor is gone: %d solves and %d works are queued again",
                        num_solves,
                        num_works,
                        extra={"executor_id": gone.id, "host": gone.host},
                    )

    def _sweep(self) -> None:
        """Submit what the store has and the engine does not know: accepted at the moment of a crash, say."""
        priorities = {Work(SOLVES, solve.id): solve.priority for solve in self._store.unended_solves()}
        fits = self._store.unended_fits()
        works = [*priorities, *(Work(FITS, fit_id(fit.tenant, model_id(fit))) for fit in fits)]
        if self._engine.runs(STUDIES):
            works += [Work(STUDIES, study_id) for study_id in self._store.unended_studies()]
        for work in self._engine.unknown(works):
            log.warning("accepted, and in no queue; queued now", extra=fields_of(work))
            self._engine.submit(work, priority=priorities.get(work, 0))

    def _forget(self) -> None:
        self._engine.forget(older_than_seconds=_RETENTION_SECONDS)
