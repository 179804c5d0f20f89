"""The store in a SQL database: one SQLite file, or PostgreSQL; writers take turns on either."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, case, func, insert, or_, select, update

from api.store.access.audit_sql import SqlAudit
from api.store.access.keys_sql import SqlApiKeys
from api.store.contract.store import (
    ACCIDENTS,
    CANCELLED,
    ENDED,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    Json,
    NewSolve,
    PlanRecord,
    QueueFull,
    SolveRecord,
)
from api.store.contract.tenants import DEFAULT_TENANT
from api.store.maintenance.counts_sql import SqlCounts
from api.store.maintenance.retention_sql import SqlRetention
from api.store.migrations.run import migrate
from api.store.models.sql import SqlModels
from api.store.models.statistics_sql import SqlStatistics
from api.store.plans.channels_sql import SqlChannels
from api.store.plans.summaries import PlanSummaries, keep_summary
from api.store.solves.events_sql import SolveEvents, append_event
from api.store.solves.executors_sql import SqlExecutors
from api.store.solves.idempotency import RequestKey
from api.store.solves.idempotency_sql import RequestKeys, known_resource, remember
from api.store.solves.removal_sql import SolveRemoval
from api.store.solves.requests import keep_request, requests_of, tagged_with
from api.store.sql import tables
from api.store.sql.blobs import insert_missing, packed, unpacked
from api.store.sql.connections import Engines, postgres_engines, sqlite_engines
from api.store.webhooks.deliveries_sql import SqlDeliveries
from api.store.webhooks.sql import SqlWebhooks, tell_webhooks

_INCUMBENT_LEVEL = 3  # a plan on its way is soon replaced, and somebody waits to hear of it


class SqlStore(
    SqlModels,
    SqlExecutors,
    SolveEvents,
    PlanSummaries,
    SqlChannels,
    SqlStatistics,
    RequestKeys,
    SolveRemoval,
    SqlRetention,
    SqlApiKeys,
    SqlAudit,
    SqlCounts,
    SqlWebhooks,
    SqlDeliveries,
):
    """What one tenant has in a SQL database, at first ``default``, and what all have together.

    Fulfils ``api.store.contract.store.Store`` and ``api.store.contract.database.Database``; whoever opens one takes it
    for the latter.
    """

    def __init__(self, engines: Engines, name: str) -> None:
        """Bring the database up to date; ``name`` is what messages call it. Raises ``WrongSchema``."""
        self._engines, self._readers, self._writer = engines, engines.readers, engines.writer
        self._tenant = DEFAULT_TENANT
        migrate(engines.writer, name)

    @classmethod
    def of_file(cls, path: Path, *, busy_timeout_seconds: float = 30.0) -> "SqlStore":
        """Open a file on a local disk, or create it."""
        return cls(sqlite_engines(path, busy_timeout_seconds=busy_timeout_seconds), str(path))

    @classmethod
    def of_postgres(cls, url: str, *, busy_timeout_seconds: float = 30.0) -> "SqlStore":
        """Open a PostgreSQL database. Raises ``UnusableDatabase``."""
        return cls(postgres_engines(url, busy_timeout_seconds=busy_timeout_seconds), "the database")

    def for_tenant(self, tenant: str) -> Self:
        """Return what one tenant has, over the same connections."""
        of_tenant = copy.copy(self)
        of_tenant._tenant = tenant  # noqa: SLF001 (one of ours)
        return of_tenant

    def accept(
        self, new: NewSolve, *, max_queued: int, reuse: bool, key: RequestKey | None = None
    ) -> tuple[SolveRecord, bool]:
        """Queue a solve, or return that of the same key or an equal one."""
        solves = tables.solves
        with self._writer.begin() as connection:
            made = known_resource(connection, self._tenant, key)
            if made is not None:
                return _require(connection, made), False
            if reuse:
                same = solves.c.request_digest == new.request_digest
                on_its_way = solves.c.state.in_((QUEUED, RUNNING)) & ~solves.c.cancel_requested
                limit = solves.c.result["termination"]["limit"].as_string()
                answers = (solves.c.state == SUCCEEDED) & (limit.is_(None) | limit.not_in(ACCIDENTS))
                equal = select(solves.c.id).where(
                    solves.c.tenant == self._tenant,
                    or_(same & (on_its_way | answers), (solves.c.request_digest == new.answered_by) & answers),
                )
                known = connection.execute(equal.order_by(solves.c.id.desc()).limit(1)).scalar()
                if known is not None:
                    remember(connection, self._tenant, key, known)
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
                    tenant=self._tenant,
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
            remember(connection, self._tenant, key, new.id)
            return _require(connection, new.id), True

    def solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve of this tenant."""
        with self._readers.begin() as connection:
            return _find(connection, solve_id, tenant=self._tenant)

    def any_solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve of whatever tenant."""
        with self._readers.begin() as connection:
            return _find(connection, solve_id)

    def solves(self, *, limit: int, before: str | None, state: str | None, tag: str | None = None) -> list[SolveRecord]:
        """Return solves, newest first."""
        own = select(*_LISTED).where(tables.solves.c.tenant == self._tenant)
        query = own.order_by(tables.solves.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(tables.solves.c.id < before)
        if state is not None:
            query = query.where(tables.solves.c.state == state)
        if tag is not None:
            query = query.where(tables.solves.c.id.in_(tagged_with(tag)))
        with self._readers.begin() as connection:
            return _listed(connection, query)

    def spec(self, request_digest: str) -> bytes | None:
        """Return the canonical bytes of the spec that was sent."""
        specs, solves = tables.specs.c, tables.solves.c
        own = select(1).where(solves.tenant == self._tenant, solves.request_digest == specs.request_digest).exists()
        return self._blob(select(specs.document).where(specs.request_digest == request_digest, own))

    def spec_of_problem(self, spec_digest: str) -> bytes | None:
        """Return the spec of the first solve with this digest, or of a plan."""
        joined = tables.specs.join(tables.solves, tables.solves.c.request_digest == tables.specs.c.request_digest)
        own = (tables.solves.c.tenant == self._tenant) & (tables.solves.c.spec_digest == spec_digest)
        query = select(tables.specs.c.document).select_from(joined).where(own)
        found = self._blob(query.order_by(tables.solves.c.id).limit(1))
        if found is not None:
            return found
        plans = tables.plan_summaries  # of solves that were deleted
        joined = tables.specs.join(plans, plans.c.request_digest == tables.specs.c.request_digest)
        own = (plans.c.tenant == self._tenant) & (plans.c.spec_digest == spec_digest)
        query = select(tables.specs.c.document).select_from(joined).where(own)
        return self._blob(query.order_by(plans.c.plan_digest).limit(1))

    def begin(self, solve_id: str, *, executor_id: str, now: float) -> SolveRecord | None:
        """Start an attempt at a solve."""
        solves = tables.solves
        this = update(solves).where(solves.c.id == solve_id, solves.c.state.not_in(ENDED))
        values = {
            "state": RUNNING,
            "executor_id": executor_id,
            "attempts": solves.c.attempts + 1,
            "started_at": func.coalesce(solves.c.started_at, _no_earlier(solves.c.created_at, now)),
        }
        with self._writer.begin() as connection:
            if connection.execute(this.values(**values)).rowcount == 0:
                return None
            return _require(connection, solve_id)

    def keep_incumbent(self, solve_id: str, *, attempt: int, document: bytes, progress: Json, now: float) -> None:
        """Keep the best plan so far."""
        solves = tables.solves
        this = update(solves).where(solves.c.id == solve_id, solves.c.state == RUNNING, solves.c.attempts == attempt)
        values = {"incumbent": packed(document, _INCUMBENT_LEVEL), "progress": dict(progress)}
        with self._writer.begin() as connection:
            if connection.execute(this.values(values)).rowcount == 1:
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
        attempt: int | None = None,
    ) -> bool:
        """End a solve and publish its plan."""
        solves = tables.solves
        change = update(solves).where(solves.c.id == solve_id, solves.c.state.not_in(ENDED))
        began = func.coalesce(solves.c.started_at, solves.c.created_at)
        if attempt is not None:
            change = change.where(solves.c.attempts == attempt)
        with self._writer.begin() as connection:
            if plan is not None:
                _publish(connection, solve_id, plan)
            ended = connection.execute(
                change.values(
                    state=state,
                    ended_at=_no_earlier(began, now),
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
            _tell_end(connection, solve_id, state, None if plan is None else plan.digest, now=now)
            return True

    def request_cancel(self, solve_id: str, *, now: float) -> SolveRecord | None:
        """Cancel a queued solve that has found nothing, mark others."""
        solves = tables.solves
        with self._writer.begin() as connection:
            this = update(solves).where(solves.c.id == solve_id, solves.c.tenant == self._tenant)
            nothing_found = (solves.c.state == QUEUED) & solves.c.incumbent.is_(None)
            ended_at = _no_earlier(func.coalesce(solves.c.started_at, solves.c.created_at), now)
            cancelled = {"state": CANCELLED, "ended_at": ended_at, "cancel_requested": True}
            if connection.execute(this.where(nothing_found).values(cancelled)).rowcount == 1:
                _tell_end(connection, solve_id, CANCELLED, None, now=now)
            connection.execute(this.where(solves.c.state.not_in(ENDED)).values(cancel_requested=True))
            return _find(connection, solve_id, tenant=self._tenant)

    def release_solves(self, executor_id: str | None) -> int:
        """Queue the solves again that a dead executor, or all, left running."""
        solves = tables.solves
        left = update(solves).where(solves.c.state == RUNNING)
        if executor_id is not None:
            left = left.where(solves.c.executor_id == executor_id)
        with self._writer.begin() as connection:
            return connection.execute(left.values(state=QUEUED)).rowcount

    def unended_solves(self) -> list[SolveRecord]:
        """Return the solves that wait or run."""
        query = select(*_LISTED).where(tables.solves.c.state.in_((QUEUED, RUNNING))).order_by(tables.solves.c.id)
        with self._readers.begin() as connection:
            return _listed(connection, query)

    def plan(self, digest: str) -> PlanRecord | None:
        """Return a published plan."""
        with self._readers.begin() as connection:
            this = (tables.plans.c.tenant == self._tenant) & (tables.plans.c.digest == digest)
            query = select(tables.plans.c.document, tables.plans.c.created_at).where(this)
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        return PlanRecord(digest=digest, canonical=unpacked(row["document"]), created_at=row["created_at"])

    def ping(self) -> None:
        """Read something."""
        with self._readers.begin() as connection:
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()

    def close(self) -> None:
        """Close all connections."""
        self._engines.dispose()

    def _blob(self, query: Any) -> bytes | None:
        with self._readers.begin() as connection:
            content = connection.execute(query).scalar()
        return None if content is None else unpacked(content)


#: What lists show: everything but the long columns.
_LISTED = [column for column in tables.solves.c if column.name not in ("incumbent", "assumptions", "warnings")]


def _tell_end(connection: Connection, solve_id: str, state: str, plan_digest: str | None, *, now: float) -> None:
    tenant = connection.execute(select(tables.solves.c.tenant).where(tables.solves.c.id == solve_id)).scalar_one()
    data = {"solve_id": solve_id, "state": state, "plan_digest": plan_digest}
    tell_webhooks(connection, tenant, f"solve.{state}", data, now=now)


def _listed(connection: Connection, query: "Select[Any]") -> list[SolveRecord]:
    rows = connection.execute(query).mappings().all()
    requests = requests_of(connection, [row["id"] for row in rows])
    return [_solve(row, requests[row["id"]]) for row in rows]


def _publish(connection: Connection, solve_id: str, plan: PlanRecord) -> None:
    """Keep the plan of a solve, as one of the solve's tenant: its bytes name what only that one may know."""
    tenant = connection.execute(select(tables.solves.c.tenant).where(tables.solves.c.id == solve_id)).scalar()
    if tenant is None:  # deleted: there is nobody to have it
        return
    values = {"tenant": tenant, "digest": plan.digest, "created_at": plan.created_at}
    insert_missing(connection, tables.plans, values, document=plan.canonical)
    if plan.summary is not None:
        keep_summary(connection, tenant, plan.summary)


def _find(connection: Connection, solve_id: str, *, tenant: str | None = None) -> SolveRecord | None:
    """Return a solve, of one tenant where that is named: another one's takes as long as one that is not there."""
    columns = [column for column in tables.solves.c if column.name != "incumbent"]
    query = select(*columns).where(tables.solves.c.id == solve_id)
    if tenant is not None:
        query = query.where(tables.solves.c.tenant == tenant)
    row = connection.execute(query).mappings().first()
    return None if row is None else _solve(row, requests_of(connection, [solve_id])[solve_id])


def _no_earlier(than: ColumnElement[float], now: float) -> ColumnElement[float]:
    """Return the time now, or a time that was written before the clock was set back: no duration is negative."""
    return case((than > now, than), else_=now)


def _require(connection: Connection, solve_id: str) -> SolveRecord:
    found = _find(connection, solve_id)
    assert found is not None
    return found


def _solve(row: RowMapping, request: Mapping[str, Any]) -> SolveRecord:
    values: Mapping[str, Any] = {key: value for key, value in row.items() if key != "incumbent"}
    return SolveRecord(**values, **request)
