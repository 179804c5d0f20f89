"""Removes what is old.

* Nothing is removed but what a cutoff names; no cutoff has a default.
* Solves that are queued or run remain, however old they are.
* A plan remains while a channel points at it or did at any time, while a stored solve has found it, while a study has
  a point with it, and while measurements refer to it; so does the spec that it was made for.
* Entries of the audit trail of a tenant go from the oldest on, so that the rest is numbered without gaps; the last
  entry remains.
* ``prune`` is one short transaction: a writer waits for a batch at most.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    case,
    delete,
    false,
    func,
    not_,
    select,
    text,
    tuple_,
)

from api.store.data_directory import locked_file
from api.store.solves.records import ENDED
from api.store.solves.rows import remove_orphaned_spec, remove_solve
from api.store.sql import tables
from api.store.sql.repository import Repository

#: The advisory lock for pruning a PostgreSQL database; writers have another.
_PRUNE_LOCK = 0x7368617264707275
#: In this order: plans may go because their solves went.
REQUEST_KEYS, SOLVES, EVENTS, PLANS, AUDIT = PRUNED = ("request_keys", "solves", "events", "plans", "audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoffs:
    """Times before which rows are old, in seconds since the epoch; ``None`` keeps all."""

    request_keys: float | None = None  # made before
    solves: float | None = None  # ended before
    events: float | None = None  # of solves that ended before
    plans: float | None = None  # published before
    audit: float | None = None  # written before


class Retention(Repository):
    """Removes what is old, of all tenants."""

    @contextlib.contextmanager
    def pruning(self) -> Iterator[bool]:
        """Hold the right to prune for a block: False if another process has it."""
        if self._readers.dialect.name == "sqlite":
            with locked_file(Path(f"{self._readers.url.database}.prune")) as is_mine:
                yield is_mine
            return
        # No transaction: the lock is one of the session, which may rest for long between batches.
        with self._readers.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            lock = {"lock": _PRUNE_LOCK}
            is_mine = connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), lock).scalar_one()
            try:
                yield is_mine
            finally:
                if is_mine:
                    connection.execute(text("SELECT pg_advisory_unlock(:lock)"), lock)

    def num_old(self, before: Cutoffs) -> Mapping[str, int]:
        """Return how much would be removed, of each of ``PRUNED``."""
        with self._readers.begin() as connection:
            return {
                kind: connection.execute(select(func.count()).select_from(old(before).subquery())).scalar_one()
                for kind, (old, _) in _KINDS.items()
            }

    def prune(self, kind: str, before: Cutoffs, *, limit: int) -> int:
        """Remove at most about ``limit`` of a kind, those of the kinds before it being gone; return their number."""
        old, remove = _KINDS[kind]
        query = old(before).limit(limit)
        with self._readers.begin() as connection:
            # No writer waits for a search that finds nothing.
            if connection.execute(query.limit(1)).first() is None:
                return 0
        with self._writer.begin() as connection:
            rows = connection.execute(query).all()
            if rows:
                remove(connection, rows)
            return len(rows)


def _is_before(time: ColumnElement[Any], cutoff: float | None) -> ColumnElement[bool]:
    return false() if cutoff is None else time < cutoff


def _has_ended_before(cutoff: float | None) -> ColumnElement[bool]:
    solves = tables.solves
    return and_(solves.c.state.in_(ENDED), _is_before(solves.c.ended_at, cutoff))


def _old_solves(before: Cutoffs) -> Select[Any]:
    solves = tables.solves
    return select(solves.c.id, solves.c.request_digest).where(_has_ended_before(before.solves)).order_by(solves.c.id)


def _old_events(before: Cutoffs) -> Select[Any]:
    log, solves = tables.solve_events, tables.solves
    query = select(log.c.solve_id, log.c.seq).join(solves, solves.c.id == log.c.solve_id)
    # Those of solves that are old themselves go with them.
    query = query.where(_has_ended_before(before.events), not_(_has_ended_before(before.solves)))
    return query.order_by(log.c.solve_id, log.c.seq)


def _old_plans(before: Cutoffs) -> Select[Any]:
    plans, solves, measurements, points = tables.plans, tables.solves, tables.measurements, tables.study_points
    found = solves.c.result["plan_digest"].as_string()
    pointers = (
        select(tables.channels.c.tenant, tables.channels.c.plan_digest),
        select(tables.channel_history.c.tenant, tables.channel_history.c.plan_digest),
        select(tables.channel_members.c.tenant, tables.channel_members.c.plan_digest),
        select(measurements.c.tenant, measurements.c.plan_digest).where(measurements.c.plan_digest.is_not(None)),
        select(tables.studies.c.tenant, points.c.plan_digest)
        .join(tables.studies, tables.studies.c.id == points.c.study_id)
        .where(points.c.plan_digest.is_not(None)),
        select(solves.c.tenant, found).where(found.is_not(None), not_(_has_ended_before(before.solves))),
    )
    is_free = [tuple_(plans.c.tenant, plans.c.digest).not_in(pointer) for pointer in pointers]
    query = select(plans.c.tenant, plans.c.digest).where(_is_before(plans.c.created_at, before.plans), *is_free)
    return query.order_by(plans.c.tenant, plans.c.digest)


def _old_request_keys(before: Cutoffs) -> Select[Any]:
    keys = tables.request_keys
    query = select(keys.c.tenant, keys.c.scope, keys.c.key).where(_is_before(keys.c.created_at, before.request_keys))
    return query.order_by(keys.c.created_at)


def _old_audit(before: Cutoffs) -> Select[Any]:
    log = tables.audit
    query = select(log.c.tenant, log.c.seq)
    if before.audit is None:
        return query.where(false())
    # Clocks may be set back: the rest begins with the first entry that is not old, and has at least one entry.
    first_young = func.min(case((log.c.at >= before.audit, log.c.seq)))
    first = func.coalesce(first_young, func.max(log.c.seq)).label("first")
    of_tenant = select(log.c.tenant, first).group_by(log.c.tenant).subquery()
    query = query.join(of_tenant, of_tenant.c.tenant == log.c.tenant).where(log.c.seq < of_tenant.c.first)
    return query.order_by(log.c.tenant, log.c.seq)


def _remove_solves(connection: Connection, rows: Any) -> None:
    for row in rows:
        remove_solve(connection, row.id, row.request_digest)


def _remove(table: Table, connection: Connection, rows: Any) -> None:
    """Remove the rows of a table that have these primary keys."""
    connection.execute(delete(table).where(tuple_(*table.primary_key).in_([tuple(row) for row in rows])))


def _remove_plans(connection: Connection, rows: Any) -> None:
    summaries = tables.plan_summaries
    of_these = tuple_(*summaries.primary_key).in_([tuple(row) for row in rows])
    specs = set(connection.execute(select(summaries.c.request_digest).where(of_these)).scalars())
    _remove(summaries, connection, rows)
    _remove(tables.plans, connection, rows)
    for request_digest in specs - {None}:
        remove_orphaned_spec(connection, request_digest)


#: How old rows of each kind are found, and removed.
_KINDS: Mapping[str, tuple[Callable[[Cutoffs], Select[Any]], Callable[[Connection, Any], None]]] = {
    REQUEST_KEYS: (_old_request_keys, partial(_remove, tables.request_keys)),
    SOLVES: (_old_solves, _remove_solves),
    EVENTS: (_old_events, partial(_remove, tables.solve_events)),
    PLANS: (_old_plans, _remove_plans),
    AUDIT: (_old_audit, partial(_remove, tables.audit)),
}
