"""Solves of one tenant.

``accept`` returns the same solve for equal request digests, however many requests race, unless that solve is being
cancelled, failed, or was cut off by an accident.
"""

from sqlalchemy import func, insert, or_, select, update

from api.store.solves.idempotency import RequestKey, known_resource, remember
from api.store.solves.records import (
    ACCIDENTS,
    CANCELLED,
    ENDED,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    NewSolve,
    QueueFull,
    SolveRecord,
)
from api.store.solves.rows import (
    LISTED_COLUMNS,
    find_solve,
    insert_request,
    listed_solves,
    no_earlier,
    notify_of_end,
    require_solve,
    tagged_with,
)
from api.store.sql import tables
from api.store.sql.blobs import insert_missing
from api.store.sql.repository import Repository


class Solves(Repository):
    """Solves of one tenant, and their specs."""

    def accept(
        self, new: NewSolve, *, max_queued: int, reuse: bool, key: RequestKey | None = None
    ) -> tuple[SolveRecord, bool]:
        """Queue a solve, and return it with True; or return with False that of the same ``key``, or an
        equal one that waits, runs or succeeded, where ``reuse`` allows it. Raises ``QueueFull`` and ``KeyReused``.
        """
        solves = tables.solves
        with self._writer.begin() as connection:
            made = known_resource(connection, self._tenant, key)
            if made is not None:
                return require_solve(connection, made), False
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
                    return require_solve(connection, known), False
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
            insert_request(connection, new.id, priority=new.priority, deadline_at=new.deadline_at, tags=new.tags)
            remember(connection, self._tenant, key, new.id)
            return require_solve(connection, new.id), True

    def solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve."""
        with self._readers.begin() as connection:
            return find_solve(connection, solve_id, tenant=self._tenant)

    def solves(self, *, limit: int, before: str | None, state: str | None, tag: str | None = None) -> list[SolveRecord]:
        """Return solves, newest first, those with an id below ``before``."""
        own = select(*LISTED_COLUMNS).where(tables.solves.c.tenant == self._tenant)
        query = own.order_by(tables.solves.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(tables.solves.c.id < before)
        if state is not None:
            query = query.where(tables.solves.c.state == state)
        if tag is not None:
            query = query.where(tables.solves.c.id.in_(tagged_with(tag)))
        with self._readers.begin() as connection:
            return listed_solves(connection, query)

    def spec(self, request_digest: str) -> bytes | None:
        """Return the canonical bytes of the spec that was sent, solver settings included."""
        specs, solves = tables.specs.c, tables.solves.c
        own = select(1).where(solves.tenant == self._tenant, solves.request_digest == specs.request_digest).exists()
        return self._blob(select(specs.document).where(specs.request_digest == request_digest, own))

    def spec_of_problem(self, spec_digest: str) -> bytes | None:
        """Return the spec of a solve or of a plan with this digest; others of it have the same problem."""
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

    def request_cancel(self, solve_id: str, *, now: float) -> SolveRecord | None:
        """Cancel a queued solve at once, mark a running one, leave an ended one; return it.

        A queued solve that has a plan, because it ran before the last start, is marked as well:
        whoever marks it ends it, so that the plan is published.
        """
        solves = tables.solves
        with self._writer.begin() as connection:
            this = update(solves).where(solves.c.id == solve_id, solves.c.tenant == self._tenant)
            nothing_found = (solves.c.state == QUEUED) & solves.c.incumbent.is_(None)
            ended_at = no_earlier(func.coalesce(solves.c.started_at, solves.c.created_at), now)
            cancelled = {"state": CANCELLED, "ended_at": ended_at, "cancel_requested": True}
            if connection.execute(this.where(nothing_found).values(cancelled)).rowcount == 1:
                notify_of_end(connection, solve_id, CANCELLED, None, now=now)
            connection.execute(this.where(solves.c.state.not_in(ENDED)).values(cancel_requested=True))
            return find_solve(connection, solve_id, tenant=self._tenant)
