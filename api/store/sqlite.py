"""The store in one SQLite file: write-ahead log, every commit on the disk, one writer at a time."""

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, create_engine, event, func, insert, or_, select, update
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor

from api.store import tables
from api.store.base import (
    CANCELLED,
    ENDED,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    Json,
    NewSolve,
    PlanRecord,
    SolveRecord,
    StatisticsRecord,
    UnknownPlan,
    VersionConflict,
)
from api.store.blobs import insert_missing, packed, unpacked
from api.store.channel_versions import ChannelVersions
from api.store.channels import ChannelRecord
from api.store.idempotency import RequestKey
from api.store.plan_summaries import PlanSummaries, add_missing_summaries, keep_summary
from api.store.queue import QueueFull
from api.store.request_keys import RequestKeys, known_resource, remember
from api.store.solve_events import SolveEvents, append_event
from api.store.solve_removal import SolveRemoval
from api.store.solve_requests import first_of, keep_request, requests_of, tagged_with
from api.store.sqlite_models import SqliteModels

_INCUMBENT_LEVEL = 3  # a plan on its way is soon replaced, and somebody waits to hear of it
_SWITCH_RETRY_SECONDS = 0.01


class WrongSchema(Exception):
    """The file was written by another version of the service; it was not touched."""


class SqliteStore(SqliteModels, SolveEvents, PlanSummaries, ChannelVersions, RequestKeys, SolveRemoval):
    """A store in a file on a local disk. Fulfils ``api.store.base.Store``."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float = 30.0) -> None:
        super().__init__(
            readers=_engine(path, busy_timeout_seconds, begin="BEGIN", pool_size=8, max_overflow=32),
            writer=_engine(path, busy_timeout_seconds, begin="BEGIN IMMEDIATE", pool_size=1, max_overflow=0),
        )
        with self._writer.begin() as connection:
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if version not in (0, *tables.READ_VERSIONS):
                raise WrongSchema(f"{path} has schema {version}; this version reads {tables.SCHEMA_VERSION}")
            tables.metadata.create_all(connection)
            if version in tables.WITHOUT_SUMMARIES:
                add_missing_summaries(connection)
            connection.exec_driver_sql(f"PRAGMA user_version={tables.SCHEMA_VERSION}")

    def accept(
        self, new: NewSolve, *, max_queued: int, reuse: bool, key: RequestKey | None = None
    ) -> tuple[SolveRecord, bool]:
        """Queue a solve, or return that of the same key or an equal one."""
        solves = tables.solves
        with self._writer.begin() as connection:
            made = known_resource(connection, key)
            if made is not None:
                return _require(connection, made), False
            if reuse:
                same = solves.c.request_digest == new.request_digest
                equal = select(solves.c.id).where(
                    or_(
                        same & solves.c.state.in_((QUEUED, RUNNING, SUCCEEDED)),
                        (solves.c.request_digest == new.answered_by) & (solves.c.state == SUCCEEDED),
                    )
                )
                known = connection.execute(equal.order_by(solves.c.id.desc()).limit(1)).scalar()
                if known is not None:
                    remember(connection, key, known)
                    return _require(connection, known), False
            waiting = select(func.count()).select_from(solves).where(solves.c.state == QUEUED)
            if connection.execute(waiting).scalar_one() >= max_queued:
                raise QueueFull
            insert_missing(
                connection,
                tables.specs,
                {"request_digest": new.request_digest, "created_at": new.created_at},
                document=new.spec_bytes,
            )
            connection.execute(
                insert(solves).values(
                    id=new.id,
                    request_digest=new.request_digest,
                    spec_digest=new.spec_digest,
                    name=new.name,
                    state=QUEUED,
                    created_at=new.created_at,
                    assumptions=list(new.assumptions),
                    warnings=list(new.warnings),
                )
            )
            keep_request(connection, new.id, priority=new.priority, deadline_at=new.deadline_at, tags=new.tags)
            remember(connection, key, new.id)
            return _require(connection, new.id), True

    def solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve."""
        with self._readers.begin() as connection:
            return _find(connection, solve_id)

    def solves(self, *, limit: int, before: str | None, state: str | None, tag: str | None = None) -> list[SolveRecord]:
        """Return solves, newest first."""
        query = select(*_LISTED).order_by(tables.solves.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(tables.solves.c.id < before)
        if state is not None:
            query = query.where(tables.solves.c.state == state)
        if tag is not None:
            query = query.where(tables.solves.c.id.in_(tagged_with(tag)))
        with self._readers.begin() as connection:
            rows = connection.execute(query).mappings().all()
            requests = requests_of(connection, [row["id"] for row in rows])
            return [_solve(row, requests[row["id"]]) for row in rows]

    def spec(self, request_digest: str) -> bytes | None:
        """Return the canonical bytes of the spec that was sent."""
        return self._blob(select(tables.specs.c.document).where(tables.specs.c.request_digest == request_digest))

    def spec_of_problem(self, spec_digest: str) -> bytes | None:
        """Return the spec of the first solve with this digest, or of a plan."""
        joined = tables.specs.join(tables.solves, tables.solves.c.request_digest == tables.specs.c.request_digest)
        query = select(tables.specs.c.document).select_from(joined).where(tables.solves.c.spec_digest == spec_digest)
        found = self._blob(query.order_by(tables.solves.c.id).limit(1))
        if found is not None:
            return found
        plans = tables.plan_summaries  # of solves that were deleted
        joined = tables.specs.join(plans, plans.c.request_digest == tables.specs.c.request_digest)
        query = select(tables.specs.c.document).select_from(joined).where(plans.c.spec_digest == spec_digest)
        return self._blob(query.order_by(plans.c.plan_digest).limit(1))

    def claim(self, *, now: float) -> SolveRecord | None:
        """Start the oldest queued solve of the highest priority."""
        solves = tables.solves
        with self._writer.begin() as connection:
            solve_id = connection.execute(first_of(QUEUED)).scalar()
            if solve_id is None:
                return None
            connection.execute(update(solves).where(solves.c.id == solve_id).values(state=RUNNING, started_at=now))
            return _require(connection, solve_id)

    def keep_incumbent(self, solve_id: str, *, document: bytes, progress: Json, now: float) -> None:
        """Keep the best plan so far."""
        solves = tables.solves
        change = update(solves).where(solves.c.id == solve_id, solves.c.state == RUNNING)
        values = {"incumbent": packed(document, _INCUMBENT_LEVEL), "progress": dict(progress)}
        with self._writer.begin() as connection:
            if connection.execute(change.values(values)).rowcount == 1:
                append_event(connection, solve_id, progress, now=now)

    def incumbent(self, solve_id: str) -> bytes | None:
        """Return the best plan so far."""
        return self._blob(select(tables.solves.c.incumbent).where(tables.solves.c.id == solve_id))

    def finish(
        self,
        solve_id: str,
        *,
        state: str,
        now: float,
        result: Json | None = None,
        error: Json | None = None,
        plan: PlanRecord | None = None,
        progress: Json | None = None,
    ) -> bool:
        """End a solve and publish its plan."""
        solves = tables.solves
        change = update(solves).where(solves.c.id == solve_id, solves.c.state.not_in(ENDED))
        with self._writer.begin() as connection:
            if plan is not None:
                insert_missing(
                    connection,
                    tables.plans,
                    {"digest": plan.digest, "created_at": plan.created_at},
                    document=plan.canonical,
                )
                if plan.summary is not None:
                    keep_summary(connection, plan.summary)
            ended = connection.execute(
                change.values(
                    state=state,
                    ended_at=now,
                    result=None if result is None else dict(result),
                    error=None if error is None else dict(error),
                    incumbent=None,
                    **({} if progress is None else {"progress": dict(progress)}),
                )
            )
            if ended.rowcount == 0:
                connection.rollback()
                return False
            if progress is not None:
                append_event(connection, solve_id, progress, now=now)
            return True

    def request_cancel(self, solve_id: str, *, now: float) -> SolveRecord | None:
        """Cancel a queued solve that has found nothing, mark others."""
        solves = tables.solves
        with self._writer.begin() as connection:
            this = update(solves).where(solves.c.id == solve_id)
            nothing_found = (solves.c.state == QUEUED) & solves.c.incumbent.is_(None)
            connection.execute(this.where(nothing_found).values(state=CANCELLED, ended_at=now, cancel_requested=True))
            connection.execute(this.where(solves.c.state.not_in(ENDED)).values(cancel_requested=True))
            return _find(connection, solve_id)

    def requeue_running(self) -> int:
        """Queue again what a dead process left running."""
        solves = tables.solves
        with self._writer.begin() as connection:
            change = update(solves).where(solves.c.state == RUNNING)
            return connection.execute(change.values(state=QUEUED, started_at=None)).rowcount

    def plan(self, digest: str) -> PlanRecord | None:
        """Return a published plan."""
        with self._readers.begin() as connection:
            query = select(tables.plans).where(tables.plans.c.digest == digest)
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        return PlanRecord(digest=digest, canonical=unpacked(row["document"]), created_at=row["created_at"])

    def keep_statistics(
        self, record: StatisticsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[StatisticsRecord, bool]:
        """Keep statistics, or return equal ones."""
        with self._writer.begin() as connection:
            if known_resource(connection, key) is None:
                remember(connection, key, record.digest)
            query = select(*_STATISTICS).where(tables.statistics.c.digest == record.digest)
            known = connection.execute(query).mappings().first()
            if known is not None:
                return StatisticsRecord(**known), False
            insert_missing(connection, tables.statistics, asdict(record), document=canonical)
            return record, True

    def statistics(self, digest: str) -> bytes | None:
        """Return the canonical bytes of statistics."""
        return self._blob(select(tables.statistics.c.document).where(tables.statistics.c.digest == digest))

    def statistics_records(self, *, limit: int, after: str | None) -> list[StatisticsRecord]:
        """Return statistics by digest."""
        query = select(*_STATISTICS).order_by(tables.statistics.c.digest).limit(limit)
        if after is not None:
            query = query.where(tables.statistics.c.digest > after)
        with self._readers.begin() as connection:
            return [StatisticsRecord(**row) for row in connection.execute(query).mappings()]

    def channel(self, name: str) -> ChannelRecord | None:
        """Return a channel."""
        with self._readers.begin() as connection:
            return _channel(connection, name)

    def channels(self, *, limit: int, after: str | None) -> list[ChannelRecord]:
        """Return channels by name."""
        query = select(tables.channels).order_by(tables.channels.c.name).limit(limit)
        if after is not None:
            query = query.where(tables.channels.c.name > after)
        with self._readers.begin() as connection:
            return [ChannelRecord(**row) for row in connection.execute(query).mappings()]

    def put_channel(self, name: str, *, plan_digest: str, expected_version: int, now: float) -> ChannelRecord:
        """Point a channel at a plan."""
        with self._writer.begin() as connection:
            current = _channel(connection, name)
            if (current.version if current else 0) != expected_version:
                raise VersionConflict(current)
            known = select(tables.plans.c.digest).where(tables.plans.c.digest == plan_digest)
            if connection.execute(known).first() is None:
                raise UnknownPlan
            new = ChannelRecord(name=name, version=expected_version + 1, plan_digest=plan_digest, updated_at=now)
            values = {"version": new.version, "plan_digest": plan_digest, "updated_at": now}
            if current is None:
                connection.execute(insert(tables.channels).values(name=name, **values))
            else:
                connection.execute(update(tables.channels).where(tables.channels.c.name == name).values(**values))
            connection.execute(insert(tables.channel_history).values(name=name, **values))
            return new

    def channel_history(self, name: str) -> list[ChannelRecord]:
        """Return all versions of a channel."""
        history = tables.channel_history
        query = select(history).where(history.c.name == name).order_by(history.c.version)
        with self._readers.begin() as connection:
            return [ChannelRecord(**row) for row in connection.execute(query).mappings()]

    def ping(self) -> None:
        """Read something."""
        with self._readers.begin() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()

    def close(self) -> None:
        """Close all connections."""
        self._readers.dispose()
        self._writer.dispose()

    def _blob(self, query: Any) -> bytes | None:
        with self._readers.begin() as connection:
            content = connection.execute(query).scalar()
        return None if content is None else unpacked(content)


#: What lists show: everything but the long columns.
_LISTED = [column for column in tables.solves.c if column.name not in ("incumbent", "assumptions", "warnings")]

_STATISTICS = [column for column in tables.statistics.c if column.name != "document"]


def _engine(path: Path, busy_timeout_seconds: float, *, begin: str, pool_size: int, max_overflow: int) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=busy_timeout_seconds,
        connect_args={"timeout": busy_timeout_seconds, "check_same_thread": False},
    )

    def on_connect(connection: DBAPIConnection, _record: object) -> None:
        # The driver must not begin transactions by itself: "begin" below does.
        connection.isolation_level = None
        cursor = connection.cursor()
        _write_ahead(cursor, busy_timeout_seconds)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def _write_ahead(cursor: DBAPICursor, busy_timeout_seconds: float) -> None:
    """Switch a file to the write-ahead log, however many others are doing so.

    SQLite answers "locked" at once, without waiting out the busy timeout, to a connection that
    meets another one in the middle of the switch.
    """
    deadline = time.monotonic() + busy_timeout_seconds
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_SWITCH_RETRY_SECONDS)
        else:
            return


def _find(connection: Connection, solve_id: str) -> SolveRecord | None:
    columns = [column for column in tables.solves.c if column.name != "incumbent"]
    row = connection.execute(select(*columns).where(tables.solves.c.id == solve_id)).mappings().first()
    return None if row is None else _solve(row, requests_of(connection, [solve_id])[solve_id])


def _require(connection: Connection, solve_id: str) -> SolveRecord:
    found = _find(connection, solve_id)
    assert found is not None
    return found


def _solve(row: RowMapping, request: Mapping[str, Any]) -> SolveRecord:
    values: Mapping[str, Any] = {key: value for key, value in row.items() if key != "incumbent"}
    return SolveRecord(**values, **request)


def _channel(connection: Connection, name: str) -> ChannelRecord | None:
    query = select(tables.channels).where(tables.channels.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else ChannelRecord(**row)
