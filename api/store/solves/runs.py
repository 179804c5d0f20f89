"""How solves are run, of all tenants.

* ``finish`` publishes the plan and ends the solve together, for the tenant of the solve. The first publication of a
  plan digest wins there.
* Each ``begin`` of a solve is an attempt. What is written for an earlier attempt is ignored, so that an executor that
  was taken for lost and wakes up cannot disturb the executor that took over.
* Events of a solve are numbered from 1, and no number is used twice. A solve has at most ``MAX_EVENTS``; then a new
  event takes the place of the last event, and the next number.
* ``save_incumbent`` appends its event, and ``finish`` the last event, in their own transactions: a reader that sees a
  solve ended sees all of its events.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, insert, select, update

from api.store.plans.plans import PlanRecord, insert_summary
from api.store.solves.records import ENDED, MAX_EVENTS, QUEUED, RUNNING, SolveMark, SolveRecord
from api.store.solves.rows import LISTED_COLUMNS, find_solve, get_solve, no_earlier, notify_of_end, read_solves
from api.store.sql import tables
from api.store.sql.blobs import Json, insert_missing, packed
from api.store.sql.repository import Repository

_INCUMBENT_LEVEL = 3  # soon replaced by a better plan, and a stream of events waits for it
_SOLVES, _LOG = tables.solves, tables.solve_events


class SolveRuns(Repository):
    """Solves of all tenants, by their ids, which differ."""

    def any_solve(self, solve_id: str) -> SolveRecord | None:
        with self._readers.begin() as connection:
            return find_solve(connection, solve_id)

    def begin(self, solve_id: str, *, executor_id: str, now: float) -> SolveRecord | None:
        """Start an attempt at a solve, and return it; ``None`` if it has ended or does not exist."""
        solves = _SOLVES.c
        this = update(_SOLVES).where(solves.id == solve_id, solves.state.not_in(ENDED))
        values = {
            "state": RUNNING,
            "executor_id": executor_id,
            "attempts": solves.attempts + 1,
            "started_at": func.coalesce(solves.started_at, no_earlier(solves.created_at, now)),
        }
        with self._writer.begin() as connection:
            if connection.execute(this.values(**values)).rowcount == 0:
                return None
            return get_solve(connection, solve_id)

    def save_incumbent(self, solve_id: str, *, attempt: int, document: bytes, progress: Json, now: float) -> None:
        """Save the best plan so far of a running solve, and append an event, if this attempt is the last one."""
        solves = _SOLVES.c
        this = update(_SOLVES).where(solves.id == solve_id, solves.state == RUNNING, solves.attempts == attempt)
        values = {"incumbent": packed(document, _INCUMBENT_LEVEL), "progress": dict(progress)}
        with self._writer.begin() as connection:
            if connection.execute(this.values(values)).rowcount == 1:
                _append_event(connection, solve_id, progress, now=now)

    def incumbent(self, solve_id: str) -> bytes | None:
        return self._blob(select(_SOLVES.c.incumbent).where(_SOLVES.c.id == solve_id))

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
        """End a solve and publish its plan.

        False, and nothing happens, if it had ended already, or a later ``attempt`` than this was begun.
        """
        solves = _SOLVES.c
        change = update(_SOLVES).where(solves.id == solve_id, solves.state.not_in(ENDED))
        if attempt is not None:
            change = change.where(solves.attempts == attempt)
        values = {
            "state": state,
            "ended_at": no_earlier(func.coalesce(solves.started_at, solves.created_at), now),
            "result": None if result is None else dict(result),
            "error": None if error is None else dict(error),
            "incumbent": None,
            **({} if progress is None else {"progress": dict(progress)}),
        }
        with self._writer.begin() as connection:
            tenant = connection.execute(select(solves.tenant).where(solves.id == solve_id)).scalar()
            if tenant is None:  # the solve was deleted
                return False
            if plan is not None:
                _publish(connection, tenant, plan)
            if connection.execute(change.values(**values)).rowcount == 0:
                connection.rollback()
                return False
            if progress is not None:
                _append_event(connection, solve_id, progress, now=now)
            notify_of_end(connection, tenant, solve_id, state, None if plan is None else plan.digest, now=now)
            return True

    def release_solves(self, executor_id: str | None) -> int:
        """Queue the solves again that an executor, or with ``None`` any executor, left running; return their number.

        They keep their best plans.
        """
        left = update(_SOLVES).where(_SOLVES.c.state == RUNNING)
        if executor_id is not None:
            left = left.where(_SOLVES.c.executor_id == executor_id)
        with self._writer.begin() as connection:
            return connection.execute(left.values(state=QUEUED)).rowcount

    def unended_solves(self) -> list[SolveRecord]:
        """Return the solves that are queued or run, oldest first; the limit of the queue bounds their number."""
        query = select(*LISTED_COLUMNS).where(_SOLVES.c.state.in_((QUEUED, RUNNING))).order_by(_SOLVES.c.id)
        with self._readers.begin() as connection:
            return read_solves(connection, query)

    def marks(self, solve_ids: Collection[str]) -> dict[str, SolveMark]:
        """Return how far solves are, in one query, without those that do not exist."""
        solves = _SOLVES.c
        last = select(func.max(_LOG.c.seq)).where(_LOG.c.solve_id == solves.id).scalar_subquery()
        query = select(solves.id, solves.state, func.coalesce(last, 0)).where(solves.id.in_(solve_ids))
        with self._readers.begin() as connection:
            return {solve: SolveMark(state=state, last_seq=seq) for solve, state, seq in connection.execute(query)}

    def num_solves_by_state(self) -> Mapping[str, int]:
        return self._num_by(_SOLVES.c.state)


def _append_event(connection: Connection, solve_id: str, progress: Json, *, now: float) -> None:
    """Append what a solve has found, unless the last event has it already."""
    of_solve = _LOG.c.solve_id == solve_id
    columns = (_LOG.c.seq, _LOG.c.at, _LOG.c.at_seconds, _LOG.c.document)
    newest = select(*columns).where(of_solve).order_by(_LOG.c.seq.desc()).limit(1)
    last = connection.execute(newest).first()
    if last is not None and last.document == dict(progress):
        return
    started_at = connection.execute(select(_SOLVES.c.started_at).where(_SOLVES.c.id == solve_id)).scalar()
    # A clock that was set back must not make a duration negative.
    earlier = 0.0 if last is None else last.at_seconds
    at_seconds = earlier if started_at is None else max(earlier, now - started_at)
    seq = 1 if last is None else last.seq + 1
    values = {"seq": seq, "at": now, "at_seconds": at_seconds, "document": dict(progress)}
    if last is not None:
        count = connection.execute(select(func.count()).select_from(_LOG).where(of_solve)).scalar_one()
        if count >= MAX_EVENTS:
            connection.execute(update(_LOG).where(of_solve, _LOG.c.seq == last.seq).values(**values))
            return
    connection.execute(insert(_LOG).values(solve_id=solve_id, **values))


def _publish(connection: Connection, tenant: str, plan: PlanRecord) -> None:
    """Insert the plan of a solve for the tenant of the solve: the bytes have names that only this tenant may know."""
    values = {"tenant": tenant, "digest": plan.digest, "created_at": plan.created_at}
    insert_missing(connection, tables.plans, values, document=plan.canonical)
    if plan.summary is not None:
        insert_summary(connection, tenant, plan.summary)
