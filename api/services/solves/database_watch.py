"""Sees what happens to work in other processes: one look at the database for all that requests wait for."""

import asyncio
import logging

from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from api.services.solves.notifications import SolveNotifications
from api.store.database import Database
from api.store.models.models import fit_id, model_id
from api.store.solves.records import ENDED, SolveMark

POLL_SECONDS = 0.5
_OF_A_FIT = "@"  # in its id, as in ``prod@3``

log = logging.getLogger(__name__)


class SolveWatch:
    """Compares what is waited for with what it was at the last look, and notifies the signals.

    What happens in this process is notified at once by the code that does it; this finds the rest.
    """

    def __init__(self, store: Database, signals: SolveNotifications, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._store, self._signals, self._poll_seconds = store, signals, poll_seconds
        self._marks: dict[str, SolveMark] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            try:
                await self.look()
            except SQLAlchemyError as error:
                log.warning("the store failed; looking again: %s", error)
            except Exception:
                log.exception("looking at solves failed; looking again")

    async def look(self) -> None:
        """Look once: one query for each kind of work that requests wait for, none if no request waits."""
        fits = {work_id for work_id in self._signals.awaited if _OF_A_FIT in work_id}
        if fits:
            unended = await run_sync(self._store.unended_fits)
            for work_id in fits - {fit_id(fit.tenant, model_id(fit)) for fit in unended}:
                self._signals.ended(work_id)
        awaited = self._signals.awaited - fits
        before = {solve_id: mark for solve_id, mark in self._marks.items() if solve_id in awaited}
        self._marks = await run_sync(self._store.marks, awaited) if awaited else {}
        others = awaited - self._marks.keys()
        for study_id in await run_sync(self._store.ended_studies, others) if others else ():
            self._signals.ended(study_id)
        for solve_id, mark in self._marks.items():
            if mark == before.get(solve_id):
                continue
            if mark.state in ENDED:
                self._signals.ended(solve_id)
            else:
                self._signals.changed(solve_id)
