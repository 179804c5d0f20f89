"""Studies of one tenant, their points, and how they are run.

* A point that was added stays as it was asked for; its outcome is written once.
* A study that has ended never changes again, and no point is added to it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from api.store.solves.idempotency import RequestKey, insert_key, resource_of
from api.store.solves.records import CANCELLED, ENDED, QUEUED, RUNNING, QueueFull
from api.store.sql import tables
from api.store.sql.blobs import Json, packed
from api.store.sql.repository import Repository, TenantRepository

_STUDIES, _POINTS = tables.studies, tables.study_points
_COLUMNS = [column for column in _STUDIES.c if column.name != "document"]
_LISTED = [column for column in _COLUMNS if column.name != "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """A study as it stands, without its request."""

    id: str
    tenant: str
    kind: str
    name: str
    state: str  # one of the states of solves
    created_at: float
    started_at: float | None
    ended_at: float | None
    cancel_requested: bool
    attempts: int
    error: Json | None
    answer: Json | None = None
    num_points: int = 0
    num_ended: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRecord:
    """A point of a study as it stands."""

    key: str
    labels: Json
    solve_id: str | None
    is_own: bool  # whether the solve was submitted for the study
    outcome: Json | None  # None until it has ended


class Studies(TenantRepository):
    """Studies of one tenant."""

    def add_study(
        self,
        study_id: str,
        *,
        kind: str,
        name: str,
        document: bytes,
        max_unended: int,
        now: float,
        key: RequestKey | None = None,
    ) -> tuple[StudyRecord, bool]:
        """Queue a study, and return it with True; with False that of the same ``key``. Raises ``QueueFull``."""
        with self._writer.begin() as connection:
            made = resource_of(connection, self._tenant, key)
            if made is not None:
                return _get(connection, made), False
            own = _STUDIES.c.tenant == self._tenant
            unended = select(func.count()).select_from(_STUDIES).where(own, _STUDIES.c.state.not_in(ENDED))
            if connection.execute(unended).scalar_one() >= max_unended:
                raise QueueFull
            values = {"id": study_id, "tenant": self._tenant, "kind": kind, "name": name, "state": QUEUED}
            extra = {"document": packed(document), "created_at": now, "cancel_requested": False, "attempts": 0}
            connection.execute(insert(_STUDIES).values(**values, **extra))
            insert_key(connection, self._tenant, key, study_id)
            return _get(connection, study_id), True

    def study_made_by(self, key: RequestKey | None) -> StudyRecord | None:
        """Return the study that a request with this key has made before."""
        with self._readers.begin() as connection:
            made = resource_of(connection, self._tenant, key)
            return None if made is None else _find(connection, made, tenant=self._tenant)

    def study(self, study_id: str) -> StudyRecord | None:
        with self._readers.begin() as connection:
            return _find(connection, study_id, tenant=self._tenant)

    def studies(self, *, limit: int, before: str | None) -> list[StudyRecord]:
        """Return studies, newest first, those with an id below ``before``; without their answers."""
        query = select(*_LISTED).where(_STUDIES.c.tenant == self._tenant).order_by(_STUDIES.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(_STUDIES.c.id < before)
        with self._readers.begin() as connection:
            return [_counted(connection, row) for row in connection.execute(query).mappings()]

    def study_request(self, study_id: str) -> bytes | None:
        """Return the request of a study."""
        own = (_STUDIES.c.id == study_id) & (_STUDIES.c.tenant == self._tenant)
        return self._blob(select(_STUDIES.c.document).where(own))

    def points(self, study_id: str) -> list[PointRecord]:
        """Return the points of a study in the order in which they were asked for."""
        own = select(1).where(_STUDIES.c.id == study_id, _STUDIES.c.tenant == self._tenant).exists()
        return self._records(_points_of(study_id).where(own), PointRecord)

    def request_study_cancel(self, study_id: str, *, now: float) -> StudyRecord | None:
        """Cancel a queued study at once, mark a running one, leave an ended one; return it."""
        this = update(_STUDIES).where(_STUDIES.c.id == study_id, _STUDIES.c.tenant == self._tenant)
        with self._writer.begin() as connection:
            ended = {"state": CANCELLED, "ended_at": now, "cancel_requested": True}
            connection.execute(this.where(_STUDIES.c.state == QUEUED).values(**ended))
            connection.execute(this.where(_STUDIES.c.state == RUNNING).values(cancel_requested=True))
            return _find(connection, study_id, tenant=self._tenant)

    def delete_study(self, study_id: str) -> str | None:
        """Delete a study that has ended with its points, and none in another state; return its state.

        Solves and plans of its points remain.
        """
        with self._writer.begin() as connection:
            found = _find(connection, study_id, tenant=self._tenant)
            if found is None or found.state not in ENDED:
                return None if found is None else found.state
            connection.execute(delete(_POINTS).where(_POINTS.c.study_id == study_id))
            connection.execute(delete(tables.request_keys).where(tables.request_keys.c.resource == study_id))
            connection.execute(delete(_STUDIES).where(_STUDIES.c.id == study_id))
            return found.state


class StudyRuns(Repository):
    """Studies of all tenants, for those who run them."""

    def begin_study(self, study_id: str, *, now: float) -> StudyRecord | None:
        """Start or go on with a study, and return it; ``None`` if it has ended or does not exist."""
        this = update(_STUDIES).where(_STUDIES.c.id == study_id, _STUDIES.c.state.not_in(ENDED))
        started = func.coalesce(_STUDIES.c.started_at, now)
        values = {"state": RUNNING, "attempts": _STUDIES.c.attempts + 1, "started_at": started}
        with self._writer.begin() as connection:
            if connection.execute(this.values(**values)).rowcount == 0:
                return None
            return _get(connection, study_id)

    def any_study_request(self, study_id: str) -> bytes | None:
        """Return the request of a study."""
        return self._blob(select(_STUDIES.c.document).where(_STUDIES.c.id == study_id))

    def any_study(self, study_id: str) -> StudyRecord | None:
        with self._readers.begin() as connection:
            return _find(connection, study_id)

    def points_of(self, study_id: str) -> list[PointRecord]:
        return self._records(_points_of(study_id), PointRecord)

    def add_point(
        self, study_id: str, key: str, *, labels: Json, solve_id: str | None, is_own: bool, outcome: Json | None = None
    ) -> None:
        """Add a point to a study that has not ended, unless it has it already."""
        this = (_POINTS.c.study_id == study_id) & (_POINTS.c.key == key)
        unended = select(1).where(_STUDIES.c.id == study_id, _STUDIES.c.state.not_in(ENDED))
        count = select(func.count()).select_from(_POINTS).where(_POINTS.c.study_id == study_id)
        with self._writer.begin() as connection:
            known = connection.execute(select(1).where(this)).first() is not None
            if known or connection.execute(unended).first() is None:
                return
            seq = connection.execute(count).scalar_one()
            values = {"study_id": study_id, "key": key, "seq": seq, "labels": dict(labels), "is_own": is_own}
            connection.execute(
                insert(_POINTS).values(**values, solve_id=solve_id, outcome=None if outcome is None else dict(outcome))
            )

    def end_point(self, study_id: str, key: str, *, outcome: Json, plan_digest: str | None) -> None:
        """Write what became of a point, once."""
        this = update(_POINTS).where(_POINTS.c.study_id == study_id, _POINTS.c.key == key, _POINTS.c.outcome.is_(None))
        with self._writer.begin() as connection:
            connection.execute(this.values(outcome=dict(outcome), plan_digest=plan_digest))

    def finish_study(
        self, study_id: str, *, state: str, now: float, answer: Json | None = None, error: Json | None = None
    ) -> bool:
        """End a study; False if it had ended already."""
        this = update(_STUDIES).where(_STUDIES.c.id == study_id, _STUDIES.c.state.not_in(ENDED))
        values = {
            "state": state,
            "ended_at": now,
            "answer": None if answer is None else dict(answer),
            "error": None if error is None else dict(error),
        }
        with self._writer.begin() as connection:
            return connection.execute(this.values(**values)).rowcount == 1

    def ended_studies(self, study_ids: Collection[str]) -> set[str]:
        """Return those of the ids that are of studies that have ended."""
        query = select(_STUDIES.c.id).where(_STUDIES.c.id.in_(study_ids), _STUDIES.c.state.in_(ENDED))
        with self._readers.begin() as connection:
            return set(connection.execute(query).scalars())

    def unended_studies(self) -> list[str]:
        """Return the ids of studies that are queued or run, oldest first."""
        query = select(_STUDIES.c.id).where(_STUDIES.c.state.not_in(ENDED)).order_by(_STUDIES.c.id)
        with self._readers.begin() as connection:
            return list(connection.execute(query).scalars())


def _points_of(study_id: str) -> Select[Any]:
    columns: Sequence[Any] = [_POINTS.c[name] for name in ("key", "labels", "solve_id", "is_own", "outcome")]
    return select(*columns).where(_POINTS.c.study_id == study_id).order_by(_POINTS.c.seq)


def _find(connection: Connection, study_id: str, *, tenant: str | None = None) -> StudyRecord | None:
    query = select(*_COLUMNS).where(_STUDIES.c.id == study_id)
    if tenant is not None:
        query = query.where(_STUDIES.c.tenant == tenant)
    row = connection.execute(query).mappings().first()
    return None if row is None else _counted(connection, row)


def _get(connection: Connection, study_id: str) -> StudyRecord:
    found = _find(connection, study_id)
    assert found is not None
    return found


def _counted(connection: Connection, row: Any) -> StudyRecord:
    """Return the record of a row with the number of its points."""
    points = select(func.count(), func.count(_POINTS.c.outcome)).where(_POINTS.c.study_id == row["id"])
    num_points, num_ended = connection.execute(points).one()
    return StudyRecord(**row, num_points=num_points, num_ended=num_ended)
