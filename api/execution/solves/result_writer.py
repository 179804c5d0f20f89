"""Writes down what comes of a solve: the best plan so far while it runs, and in the end how it ended.

The store comes first; what is counted, sent and logged follows from what it took.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.trace import Tracer
from sqlalchemy.exc import SQLAlchemyError

from api.execution.maintenance.retry import retried
from api.execution.processes.solve import Incumbent, SolveAnswer
from api.execution.solves.results import (
    STOPPED,
    Stop,
    plan_record_of,
    progress_of,
    reason_of,
    result_of_answer,
    result_of_stopped,
)
from api.observability.metrics import WorkMetrics
from api.observability.tracing import publish_span, set_end
from api.store.database import Database
from api.store.solves.records import CANCELLED, FAILED, SUCCEEDED
from api.store.sql.blobs import Json

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SolveRun:
    """A solve while it runs."""

    id: str
    attempt: int | None  # None of one that is not begun here
    incumbent_file: Path
    best: Incumbent | None = None
    began: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)


class SolveWriter:
    """Keeps plans and ends of the solves of one runner."""

    def __init__(
        self,
        store: Database,
        *,
        stopping: threading.Event,
        on_change: Callable[[str], None],
        metrics: WorkMetrics,
        tracer: Tracer,
        clock: Callable[[], float],
    ) -> None:
        """An end is tried again until the store takes it, or the server is ``stopping``."""
        self._store, self._stopping, self._on_change = store, stopping, on_change
        self._metrics, self._tracer, self._clock = metrics, tracer, clock

    def saved_incumbent(self, solve_id: str) -> Incumbent | None:
        document = self._store.incumbent(solve_id)
        return None if document is None else Incumbent.of(document)

    def improve(self, run: SolveRun, incumbent: Incumbent) -> None:
        """Keep a plan, unless one from before the last start of the server is better."""
        if _better(run.best, incumbent) is run.best:
            return
        if run.best is None or incumbent.seconds < run.best.seconds:
            self._metrics.incumbents.inc()
        run.best = incumbent
        assert run.attempt is not None
        try:
            self._store.save_incumbent(
                run.id,
                attempt=run.attempt,
                document=incumbent.document,
                progress=progress_of(incumbent),
                now=self._clock(),
            )
        except SQLAlchemyError:
            log.exception("the store failed; the plan is kept in memory", extra={"solve_id": run.id})
        self._on_change(run.id)

    def end(self, run: SolveRun, answer: SolveAnswer | None, stop: Stop | None) -> None:
        error = None if answer is None else answer.error
        if error is not None and run.best is not None:
            log.error("refused with %s after it had found a plan", error["code"], extra={"solve_id": run.id})
            stop = Stop.DEFECT
        if stop is Stop.CANCELLED:
            self._finish(run, CANCELLED, result=result_of_stopped(run.best, stop), best=run.best)
        elif stop is not None and run.best is not None:
            self._finish(run, SUCCEEDED, result=result_of_stopped(run.best, stop), best=run.best)
        elif stop is not None:
            self._finish(run, FAILED, error=STOPPED[stop])
        elif error is not None:
            self._finish(run, FAILED, error=error)
        elif answer is not None:
            best = answer.best if answer.is_repeatable and answer.best is not None else _better(answer.best, run.best)
            self._finish(run, SUCCEEDED, result=result_of_answer(answer, best), best=best)

    def _finish(
        self,
        run: SolveRun,
        state: str,
        *,
        result: Json | None = None,
        error: Json | None = None,
        best: Incumbent | None = None,
    ) -> None:
        now = self._clock()
        plan = None if best is None else plan_record_of(best, solve_id=run.id, now=now)
        progress = None if best is None else progress_of(best)
        with publish_span(self._tracer, run.id, None if plan is None else plan.digest):
            is_end = retried(
                lambda: self._store.finish(
                    run.id,
                    state=state,
                    now=now,
                    result=result,
                    error=error,
                    plan=plan,
                    progress=progress,
                    attempt=run.attempt,
                ),
                self._stopping,
            )
        if is_end:
            seconds = None if run.attempt is None else time.monotonic() - run.began
            reason = reason_of(result, error)
            self._metrics.solve_ended(state, reason, seconds)
            set_end(state, reason)
            duration = {} if seconds is None else {"seconds": round(seconds, 3)}
            log.info("the solve ended", extra={"solve_id": run.id, "state": state, "reason": reason, **duration})


def _better(first: Incumbent | None, second: Incumbent | None) -> Incumbent | None:
    """Return the plan with the lower objective, of equal ones that with the higher bound; else the first.

    A plan that ordered objectives led to comes before any that was found on the way there.
    """
    if first is None or second is None:
        return first or second
    of_first, of_second = ((not one.is_ordered, one.seconds, -one.bound_seconds) for one in (first, second))
    return second if of_second < of_first else first
