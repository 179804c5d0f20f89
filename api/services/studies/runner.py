"""Runs studies: submits the points of each round as solves, and asks for the next round when all of them have ended.

All that a study has come to is in the store. A study that was cut off is run again from its points, submits those that
have no solve yet, and ends as it would have.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from api.execution.base import Interrupted
from api.execution.maintenance.retry import retried
from api.services.errors import ApiError
from api.services.solves.service import SolveOptions, SolveService
from api.services.studies.comparing import Comparer
from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules import outcomes
from api.services.studies.rules.base import Point, PointOutcome, Study
from api.services.studies.rules.comparison import Comparison
from api.services.studies.rules.figures import Machines
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from api.store.database import Database
from api.store.solves.records import CANCELLED, ENDED, FAILED, SUCCEEDED, SolveRecord
from api.store.studies.studies import PointRecord, StudyRecord
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import InvalidProblem, UnsupportedRequest

#: Studies that run at a time in a server; each waits for its solves most of the time.
NUM_SLOTS = 8
#: Points of a study whose solves wait or run at a time: others want plans, too.
MOST_OPEN = 8
_PRIORITY = -50  # of solves of points: a launcher that waits goes first
_POLL_SECONDS = 0.1
_PAUSE_SECONDS = 2.0  # while the queue is full
_MOST_ATTEMPTS = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planning:
    """What the studies of a tenant plan with."""

    solves: SolveService
    library: Library
    find_plan: Callable[[str], bytes | None]


class StudyRunner:
    """Fulfils ``api.execution.base.Runner`` for studies."""

    def __init__(
        self,
        store: Database,
        planning_of: Callable[[str], Planning],
        *,
        on_end: Callable[[str], None],
        memory_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Plans are compared in a process that may take ``memory_bytes``."""
        self._store, self._planning_of, self._on_end, self._clock = store, planning_of, on_end, clock
        self._comparer = Comparer(memory_bytes)
        self._stopping = threading.Event()

    @property
    def num_slots(self) -> int:
        return NUM_SLOTS

    def stop(self) -> None:
        """Leave studies as they are; they go on here after the next start, or elsewhere."""
        self._stopping.set()

    def run(self, work_id: str) -> None:
        record = retried(lambda: self._store.begin_study(work_id, now=self._clock()), self._stopping)
        if record is not None:
            try:
                self._run(record)
            except (Interrupted, SQLAlchemyError):
                raise Interrupted from None
            except Exception:
                log.exception("the study failed", extra={"study_id": work_id})
                error = {"code": "study-defect", "message": "the study failed; the log of the server has the details"}
                self._store.finish_study(work_id, state=FAILED, now=self._clock(), error=error)
        if self._stopping.is_set():
            raise Interrupted
        self._on_end(work_id)

    def _run(self, record: StudyRecord) -> None:
        if record.attempts > _MOST_ATTEMPTS:
            error = {"code": "too-many-attempts", "message": "whatever ran the study was gone each time"}
            self._store.finish_study(record.id, state=FAILED, now=self._clock(), error=error)
            return
        raw = self._store.any_study_request(record.id)
        assert raw is not None
        planning = self._planning_of(record.tenant)
        study = study_of(parse_study(raw), planning.library)
        run = _Run(record, study, self._store, planning, self._compare)
        while not run.is_over():
            if self._stopping.wait(_POLL_SECONDS):
                raise Interrupted
        state = CANCELLED if run.is_cancelled else SUCCEEDED
        self._store.finish_study(record.id, state=state, now=self._clock(), answer=study.answer(run.ended))

    def _compare(
        self, comparison: Comparison, planning: Planning, is_wanted: Callable[[], bool]
    ) -> PointOutcome | None:
        """Compare plans; ``None`` if that is not wanted any more, and no outcome if the server stops."""
        outcome = self._comparer.outcome(
            comparison, planning.library, planning.find_plan, lambda: not self._stopping.is_set() and is_wanted()
        )
        if outcome is None and self._stopping.is_set():
            raise Interrupted
        return outcome


#: Compares plans while they are wanted.
Compare = Callable[[Comparison, Planning, Callable[[], bool]], PointOutcome | None]


class _Run:
    """One study while it runs here."""

    def __init__(
        self, record: StudyRecord, study: Study, store: Database, planning: Planning, compare: Compare
    ) -> None:
        self._id, self._study, self._store, self._planning = record.id, study, store, planning
        self._compare = compare
        self._machines: dict[str, Machines | None] = {}
        self.ended: dict[str, PointOutcome] = {}
        self._open: dict[str, PointRecord] = {}
        self.is_cancelled = record.cancel_requested
        for point in store.points_of(self._id):
            if point.outcome is None:
                self._open[point.key] = point
            else:
                self.ended[point.key] = outcomes.of_json(point.outcome)
        self._round: Sequence[Point] = ()
        self._full_until = -math.inf  # monotonic clock: a point is not checked again at every look at a full queue

    def is_over(self) -> bool:
        """Look at the solves of points, submit more; whether the study has come to its end."""
        self._is_wanted()
        self._look()
        if self.is_cancelled:
            self._stop_points()
            return not self._open
        if not any(point.key not in self.ended for point in self._round):
            self._round = self._study.next_points(self.ended)
            if not self._round:
                return True
            self._machines = {point.key: point.machines for point in self._round}
        for point in self._round:
            if len(self._open) >= MOST_OPEN:
                break
            if point.key in self.ended or point.key in self._open:
                continue
            if time.monotonic() < self._full_until or not self._submit(point):
                break
        return False

    def _is_wanted(self) -> bool:
        """Whether the study has neither been cancelled nor ended."""
        if not self.is_cancelled:
            record = self._store.any_study(self._id)
            self.is_cancelled = record is None or record.cancel_requested or record.state in ENDED
        return not self.is_cancelled

    def _stop_points(self) -> None:
        """Cancel the solves of the study; those that others asked for, too, are left to them."""
        for point in list(self._open.values()):
            if point.is_own and point.solve_id is not None:
                self._cancel(point.solve_id)
            else:
                self._end(point.key, outcomes.failed("the study was cancelled", state=CANCELLED))

    def _look(self) -> None:
        """Write down the outcomes of points whose solves have ended."""
        ids = [point.solve_id for point in self._open.values() if point.solve_id is not None]
        marks = self._store.marks(ids) if ids else {}
        for point in list(self._open.values()):
            mark = None if point.solve_id is None else marks.get(point.solve_id)
            if mark is None:
                self._end(point.key, outcomes.failed("the solve of the point was deleted", "run the study again"))
            elif mark.state in ENDED and point.key in self._machines:
                assert point.solve_id is not None
                self._end(point.key, self._outcome(self._planning.solves.get(point.solve_id), point.key))
            elif mark.state in ENDED and self.is_cancelled:
                self._end(point.key, outcomes.failed("the study was cancelled", state=CANCELLED))

    def _outcome(self, solve: SolveRecord, key: str) -> PointOutcome:
        result: Mapping[str, Any] = solve.result or {}
        digest = result.get("plan_digest")
        machines = self._machines[key]
        if digest is not None and machines is not None:
            plan = self._planning.find_plan(str(digest))
            if plan is None:
                return outcomes.failed("the plan of the point was deleted", "run the study again")
            # Another solve may have published the plan, with a bound and a limit of its own.
            own = {"objective": result["objective"], "termination": result["termination"]}
            return outcomes.outcome_of_plan({**json.loads(plan), **own}, machines)
        if solve.state == SUCCEEDED:
            ended = result["termination"]
            return outcomes.outcome_without_plan(
                ended["reason"], ended["limit"], ended["detail"], result.get("shortfalls", ())
            )
        if solve.state == CANCELLED:
            return outcomes.failed("the solve of the point was cancelled", state=CANCELLED)
        error: Mapping[str, Any] = solve.error or {}
        return outcomes.failed(str(error.get("message", "the solve failed")), str(error.get("hint", "")))

    def _submit(self, point: Point) -> bool:
        """Submit the solve of a point, or compare its plans; False if no more can be done now."""
        if point.comparison is not None:
            compared = self._compare(point.comparison, self._planning, self._is_wanted)
            if compared is not None:
                self._add(point, outcome=compared)
            return compared is not None
        if point.spec is None:
            self._add(point, outcome=outcomes.impossible(point.issue))
            return True
        options = SolveOptions(priority=_PRIORITY, tags=[f"study={self._id}"])
        try:
            request = parse_spec(canonical_bytes(point.spec), self._planning.library)
            solve, is_own = self._planning.solves.submit(request, fresh=False, options=options)
        except (InvalidProblem, UnsupportedRequest) as error:
            issues = error.issues if isinstance(error, InvalidProblem) else ()
            self._add(point, outcome=outcomes.outcome_of_issues(issues) if issues else outcomes.impossible(str(error)))
            return True
        except ApiError:  # the queue is full
            self._full_until = time.monotonic() + _PAUSE_SECONDS
            return False
        self._store.add_point(self._id, point.key, labels=point.labels, solve_id=solve.id, is_own=is_own)
        self._open[point.key] = PointRecord(
            key=point.key, labels=point.labels, solve_id=solve.id, is_own=is_own, outcome=None
        )
        return True

    def _add(self, point: Point, *, outcome: PointOutcome) -> None:
        """Add a point that no solve is needed for."""
        document = outcomes.to_json(outcome)
        self._store.add_point(self._id, point.key, labels=point.labels, solve_id=None, is_own=False, outcome=document)
        self.ended[point.key] = outcome

    def _end(self, key: str, outcome: PointOutcome) -> None:
        self._store.end_point(self._id, key, outcome=outcomes.to_json(outcome), plan_digest=outcome.plan_digest)
        self.ended[key] = outcome
        del self._open[key]

    def _cancel(self, solve_id: str) -> None:
        try:
            self._planning.solves.cancel(solve_id)
        except ApiError:  # it is gone
            return
