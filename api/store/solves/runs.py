"""How solves are run, of whatever tenant they are.

* ``finish`` publishes the plan and ends the solve together, for the tenant of the solve. The first publication of a
  plan digest wins there.
* Each ``begin`` of a solve is an attempt. What is written for an earlier attempt is ignored, so that an executor that
  was taken for dead and wakes up cannot disturb the executor that took over.
"""

from sqlalchemy import Connection, func, select, update

from api.store.plans.plans import PlanRecord, insert_summary
from api.store.solves.events import append_event
from api.store.solves.records import ENDED, QUEUED, RUNNING, Json, SolveRecord
from api.store.solves.rows import LISTED_COLUMNS, find_solve, listed_solves, no_earlier, notify_of_end, require_solve
from api.store.sql import tables
from api.store.sql.blobs import insert_missing, packed
from api.store.sql.repository import Repository

_INCUMBENT_LEVEL = 3  # a plan on its way is soon replaced, and somebody waits to hear of it


class SolveRuns(Repository):
    """Solves of all tenants, by their ids, which differ."""

    def any_solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve."""
        with self._readers.begin() as connection:
            return find_solve(connection, solve_id)

    def begin(self, solve_id: str, *, executor_id: str, now: float) -> SolveRecord | None:
        """Start an attempt at a solve, and return it; ``None`` where it has ended or is not there."""
        solves = tables.solves
        this = update(solves).where(solves.c.id == solve_id, solves.c.state.not_in(ENDED))
        values = {
            "state": RUNNING,
            "executor_id": executor_id,
            "attempts": solves.c.attempts + 1,
            "started_at": func.coalesce(solves.c.started_at, no_earlier(solves.c.created_at, now)),
        }
        with self._writer.begin() as connection:
            if connection.execute(this.values(**values)).rowcount == 0:
                return None
            return require_solve(connection, solve_id)

    def keep_incumbent(self, solve_id: str, *, attempt: int, document: bytes, progress: Json, now: float) -> None:
        """Keep the best plan so far of a running solve, and append an event, where this attempt is the last one."""
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
        """End a solve and publish its plan.

        False, and nothing happens, where it had ended already, or a later ``attempt`` than this was begun.
        """
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
                    ended_at=no_earlier(began, now),
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
            notify_of_end(connection, solve_id, state, None if plan is None else plan.digest, now=now)
            return True

    def release_solves(self, executor_id: str | None) -> int:
        """Queue the solves again that a dead executor left running, with their best plans; return their number.

        With ``None``, those of all executors.
        """
        solves = tables.solves
        left = update(solves).where(solves.c.state == RUNNING)
        if executor_id is not None:
            left = left.where(solves.c.executor_id == executor_id)
        with self._writer.begin() as connection:
            return connection.execute(left.values(state=QUEUED)).rowcount

    def unended_solves(self) -> list[SolveRecord]:
        """Return the solves that wait or run, oldest first; their number is bounded by that of those that may wait."""
        query = select(*LISTED_COLUMNS).where(tables.solves.c.state.in_((QUEUED, RUNNING))).order_by(tables.solves.c.id)
        with self._readers.begin() as connection:
            return listed_solves(connection, query)


def _publish(connection: Connection, solve_id: str, plan: PlanRecord) -> None:
    """Keep the plan of a solve, as one of the solve's tenant: its bytes name what only that one may know."""
    tenant = connection.execute(select(tables.solves.c.tenant).where(tables.solves.c.id == solve_id)).scalar()
    if tenant is None:  # deleted: there is nobody to have it
        return
    values = {"tenant": tenant, "digest": plan.digest, "created_at": plan.created_at}
    insert_missing(connection, tables.plans, values, document=plan.canonical)
    if plan.summary is not None:
        insert_summary(connection, tenant, plan.summary)
