"""Solves of one tenant: their requests, specs and events.

``accept`` returns the same solve for equal request digests, however many requests race, unless that solve is being
cancelled, failed, or was cut off by an accident.
"""

from sqlalchemy import func, insert, or_, select, update

from api.store.solves.idempotency import RequestKey, insert_key, resource_of
from api.store.solves.records import (
    ACCIDENTS,
    CANCELLED,
    ENDED,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    EventRecord,
    NewSolve,
    QueueFull,
    SolveRecord,
)
from api.store.solves.rows import (
    LISTED_COLUMNS,
    find_solve,
    get_solve,
    insert_options,
    no_earlier,
    notify_of_end,
    read_solves,
    remove_solve,
)
from api.store.sql import tables
from api.store.sql.blobs import insert_missing
from api.store.sql.repository import TenantRepository

_SOLVES, _SPECS, _TAGS = tables.solves, tables.specs, tables.solve_tags
_LOG, _SUMMARIES = tables.solve_events, tables.plan_summaries
_EVENT = [column for column in _LOG.c if column.name != "solve_id"]


class Solves(TenantRepository):
    """Solves of one tenant."""

    def accept(
        self, new: NewSolve, *, max_queued: int, reuse: bool, key: RequestKey | None = None
    ) -> tuple[SolveRecord, bool]:
        """Queue a solve, and return it with True.

        With False, return the solve of the same ``key``; or, if ``reuse`` allows it, an equal solve that is queued,
        runs or succeeded. Raises ``QueueFull`` and ``KeyReused``.
        """
        solves = _SOLVES.c
        with self._writer.begin() as connection:
            made = resource_of(connection, self._tenant, key)
            if made is not None:
                return get_solve(connection, made), False
            if reuse:
                same = solves.request_digest == new.request_digest
                on_its_way = solves.state.in_((QUEUED, RUNNING)) & ~solves.cancel_requested
                limit = solves.result["termination"]["limit"].as_string()
                answers = (solves.state == SUCCEEDED) & (limit.is_(None) | limit.not_in(ACCIDENTS))
                equal = select(solves.id).where(
                    solves.tenant == self._tenant,
                    or_(same & (on_its_way | answers), (solves.request_digest == new.answered_by) & answers),
                )
                known = connection.execute(equal.order_by(solves.id.desc()).limit(1)).scalar()
                if known is not None:
                    insert_key(connection, self._tenant, key, known)
                    return get_solve(connection, known), False
            queued = select(func.count()).select_from(_SOLVES).where(solves.state == QUEUED)
            if connection.execute(queued).scalar_one() >= max_queued:
                raise QueueFull
            spec = {"request_digest": new.request_digest, "created_at": new.created_at}
            insert_missing(connection, _SPECS, spec, document=new.spec_bytes)
            connection.execute(
                insert(_SOLVES).values(
                    tenant=self._tenant,
                    id=new.id,
                    spec_digest=new.spec_digest,
                    name=new.name,
                    state=QUEUED,
                    assumptions=list(new.assumptions),
                    warnings=list(new.warnings),
                    **spec,
                )
            )
            insert_options(connection, new)
            insert_key(connection, self._tenant, key, new.id)
            return get_solve(connection, new.id), True

    def solve(self, solve_id: str) -> SolveRecord | None:
        with self._readers.begin() as connection:
            return find_solve(connection, solve_id, tenant=self._tenant)

    def solves(self, *, limit: int, before: str | None, state: str | None, tag: str | None = None) -> list[SolveRecord]:
        """Return solves, newest first, those with an id below ``before``."""
        query = select(*LISTED_COLUMNS).where(_SOLVES.c.tenant == self._tenant)
        query = query.order_by(_SOLVES.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(_SOLVES.c.id < before)
        if state is not None:
            query = query.where(_SOLVES.c.state == state)
        if tag is not None:
            query = query.where(_SOLVES.c.id.in_(select(_TAGS.c.solve_id).where(_TAGS.c.tag == tag)))
        with self._readers.begin() as connection:
            return read_solves(connection, query)

    def events(self, solve_id: str, *, after: int) -> list[EventRecord]:
        """Return the events of a solve with a number above ``after``, oldest first."""
        own = select(1).where(_SOLVES.c.id == solve_id, _SOLVES.c.tenant == self._tenant).exists()
        query = select(*_EVENT).where(_LOG.c.solve_id == solve_id, _LOG.c.seq > after, own).order_by(_LOG.c.seq)
        return self._records(query, EventRecord)

    def spec(self, request_digest: str) -> bytes | None:
        """Return the canonical bytes of the spec of a request, solver settings included."""
        same = _SOLVES.c.request_digest == _SPECS.c.request_digest
        own = select(1).where(_SOLVES.c.tenant == self._tenant, same).exists()
        return self._blob(select(_SPECS.c.document).where(_SPECS.c.request_digest == request_digest, own))

    def spec_of_problem(self, spec_digest: str) -> bytes | None:
        """Return the spec of one of the solves or plans with this digest; all of them have the same problem."""
        # Plans remain when their solves are deleted.
        for owners, first in ((_SOLVES, _SOLVES.c.id), (_SUMMARIES, _SUMMARIES.c.plan_digest)):
            joined = _SPECS.join(owners, owners.c.request_digest == _SPECS.c.request_digest)
            own = (owners.c.tenant == self._tenant) & (owners.c.spec_digest == spec_digest)
            query = select(_SPECS.c.document).select_from(joined).where(own).order_by(first).limit(1)
            if (found := self._blob(query)) is not None:
                return found
        return None

    def request_cancel(self, solve_id: str, *, now: float) -> SolveRecord | None:
        """Cancel a queued solve at once, mark a running one, leave an ended one; return it.

        A queued solve that has a plan, because it ran before the last start, is marked as well: the caller ends it,
        so that the plan is published.
        """
        solves = _SOLVES.c
        with self._writer.begin() as connection:
            this = update(_SOLVES).where(solves.id == solve_id, solves.tenant == self._tenant)
            nothing_found = (solves.state == QUEUED) & solves.incumbent.is_(None)
            ended_at = no_earlier(func.coalesce(solves.started_at, solves.created_at), now)
            cancelled = {"state": CANCELLED, "ended_at": ended_at, "cancel_requested": True}
            if connection.execute(this.where(nothing_found).values(cancelled)).rowcount == 1:
                notify_of_end(connection, self._tenant, solve_id, CANCELLED, None, now=now)
            connection.execute(this.where(solves.state.not_in(ENDED)).values(cancel_requested=True))
            return find_solve(connection, solve_id, tenant=self._tenant)

    def delete_solve(self, solve_id: str) -> str | None:
        """Delete a solve that has ended, and none in another state; return its state, ``None`` if there is none."""
        with self._writer.begin() as connection:
            this = (_SOLVES.c.id == solve_id) & (_SOLVES.c.tenant == self._tenant)
            found = connection.execute(select(_SOLVES.c.state, _SOLVES.c.request_digest).where(this)).first()
            if found is None:
                return None
            if found.state in ENDED:
                remove_solve(connection, solve_id, found.request_digest)
            return str(found.state)
