"""The engine on DBOS: a durable queue in a database, here given nothing but kinds and ids (decision 0022).

DBOS is one per process, and finds what it runs by name, hence the module's one function ``perform`` and the
engine that it finds. What DBOS keeps can be lost without harm: ``api.execution.maintenance.takeover`` submits again
what the store has and the engine does not know.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbos import (
    DBOS,
    DBOSClient,
    DBOSConfig,
    DBOSPortableJSONSerializer,
    SetEnqueueOptions,
    SetWorkflowID,
    WorkflowStatus,
)
from dbos import error as dbos_error
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError

from api.execution.base import FITS, SOLVES, STUDIES, EngineUnavailable, Interrupted, Runner, Work, fields_of
from api.store.sql.connections import make_durable, postgres_url

_NAME = "shardplan"
#: Of what is enqueued, not of the release: any release that knows it runs what another one left.
_WORK_VERSION = "work-1"
#: How often works are looked for: people wait for solves, and a look takes some milliseconds of the processor.
_POLL_SECONDS = {SOLVES: 0.1, FITS: 1.0, STUDIES: 0.2}
_BUSY_TIMEOUT_SECONDS = 30.0
_STOP_POLL_SECONDS = 0.01
#: States in which DBOS is going to run something, and in which somebody does.
_WAITING = ("ENQUEUED", "DELAYED")
_BEGUN = "PENDING"
_LOWEST_PRIORITY = 100
_BATCH = 500

log = logging.getLogger(__name__)


class DbosEngine:
    """Hands works to the runners of this process, or of others that share its database.

    Keeps the guarantees of ``api.execution.base``. One at a time in a process. Thread safe.
    """

    def __init__(self, executor_id: str, runners: Mapping[str, Runner], *, file: Path, url: str | None) -> None:
        """Hand works to ``runners`` by kind, with a queue in a PostgreSQL database, or else in a file."""
        self._executor_id, self._runners, self._file, self._url = executor_id, runners, file, url
        self._lock = threading.Lock()
        self._num_active = 0
        self._is_stopping = False
        self._is_started = False

    def start(self) -> None:
        """Launch DBOS, which takes up what an earlier life of this executor left. Raises ``EngineUnavailable``."""
        with _current.lock:
            if _current.engine is not None:
                raise EngineUnavailable("another engine runs in this process")
            _current.engine = self
        try:
            self._launch()
        except (SQLAlchemyError, dbos_error.DBOSException, OSError) as error:
            self._destroy()
            reason = getattr(error, "orig", None) or error
            raise EngineUnavailable(f"cannot use the queue of works: {reason}") from error
        self._is_started = True

    def _launch(self) -> None:
        url = f"sqlite:///{self._file}" if self._url is None else postgres_url(self._url)
        database = _sqlite(self._file) if self._url is None else None
        DBOS.migrate(url)
        client = DBOSClient(
            system_database_url=None if database is not None else url,
            system_database_engine=database,
            application_name=_NAME,
        )
        # Before the launch, which looks at once for queues that are there, and then only every second.
        for kind, runner in self._runners.items():
            if self._url is not None:
                _warn_of_another_number(client, kind, runner.num_slots)
            client.register_queue(
                kind,
                worker_concurrency=runner.num_slots or None,  # none: not set yet
                polling_interval_sec=_POLL_SECONDS[kind],
                # An executor that runs nothing must not decide how much others run.
                on_conflict="always_update" if runner.num_slots else "never_update",
                application_name=_NAME,
            )
        client.destroy()
        config: DBOSConfig = {
            "name": _NAME,
            "executor_id": self._executor_id,
            "application_version": _WORK_VERSION,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "use_listen_notify": False,  # works are polled for, no process waits for messages
        }
        if database is None:
            config["system_database_url"] = url
        else:
            config["system_database_engine"] = database
        DBOS(config=config)
        DBOS.listen_queues([kind for kind, runner in self._runners.items() if runner.num_slots])
        DBOS.launch()

    def stop(self) -> None:
        """Wait for the runners, which are stopping already, and let go of the database."""
        with self._lock:
            self._is_stopping = True
        while self._num_active:
            time.sleep(_STOP_POLL_SECONDS)
        self._destroy()

    def runs(self, kind: str) -> bool:
        """Whether this process runs, or queues, works of a kind."""
        return kind in self._runners

    @property
    def is_running(self) -> bool:
        """Whether DBOS was launched, and a thread looks for works of each kind that is run here."""
        names = {thread.name for thread in threading.enumerate()}
        kinds = [kind for kind, runner in self._runners.items() if runner.num_slots]
        return self._is_started and all(f"queue-worker-{kind}" in names for kind in kinds)

    def submit(self, work: Work, *, priority: int = 0) -> None:
        """Enqueue a work under an id that is its own, so that twice is once; -100 to 100, the highest goes first.

        A failure is logged: ``unknown`` will report the work.
        """
        try:
            with (
                SetWorkflowID(_workflow_id(work)),
                SetEnqueueOptions(priority=1 + _LOWEST_PRIORITY - priority),
            ):
                DBOS.enqueue_workflow(work.kind, perform, work.kind, work.id)
        except (SQLAlchemyError, dbos_error.DBOSException):
            log.exception("kept, and queued as soon as the database answers", extra=fields_of(work))

    def unknown(self, works: Sequence[Work]) -> list[Work]:
        """Return works that DBOS does not know, or has given up, or believes with an executor that cannot be."""
        if not works:
            return []
        by_id = {_workflow_id(work): work for work in works}
        found = DBOS.list_workflows(workflow_ids=list(by_id), load_input=False, load_output=False)
        ended = [status.workflow_id for status in found if not self._will_run(status)]
        if ended:
            DBOS.delete_workflows(ended)
        running = {status.workflow_id for status in found} - set(ended)
        return [work for workflow_id, work in by_id.items() if workflow_id not in running]

    def _will_run(self, status: WorkflowStatus) -> bool:
        """Whether a process runs a work, or is going to; this executor alone uses a queue in a file."""
        if status.status == _BEGUN:
            return self._url is not None or status.executor_id == self._executor_id
        return status.status in _WAITING

    def recover(self, executor_id: str) -> int:
        """Enqueue again what an executor had begun. DBOS has this as a function that is not public yet."""
        return len(DBOS._recover_pending_workflows([executor_id]))  # noqa: SLF001

    def forget(self, *, older_than_seconds: float) -> None:
        """Delete works that ended; their results are in the store."""
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - older_than_seconds))
        while True:
            found = DBOS.list_workflows(
                completed_before=before,
                status=["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"],
                limit=_BATCH,
                load_input=False,
                load_output=False,
            )
            if not found:
                return
            DBOS.delete_workflows([status.workflow_id for status in found])

    def perform(self, kind: str, work_id: str) -> None:
        """Run one work, in a thread of DBOS."""
        with self._lock:
            if self._is_stopping:
                raise Interrupted
            self._num_active += 1
        try:
            self._runners[kind].run(work_id)
        finally:
            with self._lock:
                self._num_active -= 1

    def _destroy(self) -> None:
        self._is_started = False
        DBOS.destroy()
        with _current.lock:
            _current.engine = None


class _Current:
    """The engine of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.engine: DbosEngine | None = None


_current = _Current()


@DBOS.workflow(name="perform")
def perform(kind: str, work_id: str) -> None:
    """Run one work with the engine of this process; what DBOS calls."""
    engine = _current.engine
    if engine is None:  # DBOS goes on for a moment after its engine
        raise Interrupted
    engine.perform(kind, work_id)


def _workflow_id(work: Work) -> str:
    return f"{work.kind}/{work.id}"


def _warn_of_another_number(client: DBOSClient, kind: str, num_slots: int) -> None:
    """Warn where the number of works at a time changes for all who share the queue: the last to start decides."""
    before = client.retrieve_queue(kind)
    if before is None or num_slots == 0 or before.worker_concurrency in (None, num_slots):
        return
    log.warning(
        "servers and workers of this database ran %s %s at a time each, and run %s from now on, as this one does;"
        " give all the same number, or 0",
        before.worker_concurrency,
        kind,
        num_slots,
    )


def _sqlite(path: Path) -> Engine:
    """Return connections as DBOS wants them, to a file with a write-ahead log: 7 times faster than its default."""
    engine = create_engine(f"sqlite:///{path}", hide_parameters=True, connect_args={"timeout": _BUSY_TIMEOUT_SECONDS})

    def on_connect(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        make_durable(connection, _BUSY_TIMEOUT_SECONDS)

    event.listen(engine, "connect", on_connect)
    return engine
