"""What can be done with studies: ask for one, look, wait, cancel, delete."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from api.execution.base import STUDIES, Work
from api.execution.queue.dbos import DbosEngine
from api.services.errors import ApiError, found, queue_full
from api.services.pages import page_of
from api.services.solves.notifications import SolveNotifications
from api.services.solves.service import new_solve_id
from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import Point
from api.services.studies.rules.outcomes import of_json
from api.settings import Settings
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from api.store.database import TenantStore
from api.store.solves.idempotency import RequestKey
from api.store.solves.records import ENDED, QueueFull
from api.store.studies.studies import PointRecord, StudyRecord
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import InvalidProblem, Issue

MAX_UNENDED = 100
_MOST_CHECKED = 16


class StudyService:
    """The use cases of studies."""

    def __init__(
        self,
        store: TenantStore,
        engine: DbosEngine,
        signals: SolveNotifications,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._engine, self._signals = store, engine, signals
        self._settings, self._clock = settings, clock

    def made_by(self, key: RequestKey | None) -> StudyRecord | None:
        """Return the study that a request with this key has made before."""
        return self._store.study_made_by(key)

    def submit(self, raw: bytes, library: Library, *, key: RequestKey | None = None) -> StudyRecord:
        """Check a request and queue its study. Raises ``InvalidProblem``."""
        request = parse_study(raw)
        check_first_points(study_of(request, library).next_points({}), library)
        now = self._clock()
        try:
            record, is_new = self._store.add_study(
                new_solve_id(now),
                kind=request.kind,
                name=request.name,
                document=raw,
                max_unended=MAX_UNENDED,
                now=now,
                key=key,
            )
        except QueueFull:
            raise queue_full(MAX_UNENDED, "study", retry_after_seconds=30) from None
        if is_new:
            self._engine.submit(Work(STUDIES, record.id))
        return record

    def get(self, study_id: str) -> StudyRecord:
        return found(self._store.study(study_id), "study")

    def points(self, study_id: str) -> list[PointRecord]:
        """Return the points of a study."""
        self.get(study_id)
        return self._store.points(study_id)

    def front(self, study_id: str, library: Library) -> dict[str, Any]:
        """Return the Pareto front of the points of a study that have ended."""
        points = self.points(study_id)
        study = study_of(parse_study(found(self._store.study_request(study_id), "study")), library)
        ended = {point.key: of_json(point.outcome) for point in points if point.outcome is not None}
        front = study.answer(ended).get("front")
        if front is None:
            raise ApiError("not-found", "a study of this kind has no front")
        return dict(front)

    async def wait(self, study_id: str, seconds: float) -> StudyRecord:
        """Return a study as soon as it has ended, or as it stands after some time."""
        limit = min(seconds, self._settings.max_wait_seconds)
        read = partial(self.get, study_id)
        return await self._signals.wait_for_end(study_id, read, lambda study: study.state in ENDED, limit)

    def cancel(self, study_id: str) -> StudyRecord:
        """Cancel a study and the solves that it submitted; points that have plans keep them."""
        record = found(self._store.request_study_cancel(study_id, now=self._clock()), "study")
        if record.state in ENDED:
            self._signals.ended(study_id)
        return record

    def delete(self, study_id: str) -> None:
        """Delete a study that has ended; solves and plans of its points stay."""
        state = found(self._store.delete_study(study_id), "study")
        if state not in ENDED:
            raise ApiError("study-state", f"the study is {state}: cancel it, or wait for its end")

    def page(self, *, limit: int, before: str | None) -> tuple[Sequence[StudyRecord], str | None]:
        """Return a page of studies, newest first, and where the next one starts."""
        return page_of(self._store.studies(limit=limit + 1, before=before), limit, lambda study: study.id)


def check_first_points(points: Sequence[Point], library: Library) -> None:
    """Reject a study of whose first points none can be planned. Raises ``InvalidProblem``."""
    refused: list[tuple[Issue, ...]] = []
    for point in points[:_MOST_CHECKED]:
        if point.spec is None:
            refused.append((Issue(code="invalid-value", pointer="/spec", message=f"{point.key}: {point.issue}"),))
            continue
        try:
            parse_spec(canonical_bytes(point.spec), library)
        except InvalidProblem as error:
            refused.append(tuple(issue.below("/spec") for issue in error.issues))
        else:
            return
    if refused:
        raise InvalidProblem(refused[0])
