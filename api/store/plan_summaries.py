"""Summaries of plans in a database: written with the plan, listed through an index."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Engine, Select, insert, select, tuple_

from api.store import tables
from api.store.base import UnknownPlan
from api.store.blobs import unpacked
from api.store.plans import PlanSummary

_SUMMARIES = tables.plan_summaries
_LISTED = [column for column in _SUMMARIES.c if column.name not in ("spec_digest", "request_digest")]


class PlanSummaries:
    """Fulfils ``api.store.plans.PlanListStore`` over an engine that reads."""

    _readers: Engine

    def plan_summaries(self, *, limit: int, before: str | None, name: str | None) -> list[PlanSummary]:
        """Return summaries of plans, newest first."""
        with self._readers.begin() as connection:
            older_than = None
            if before is not None:
                query = select(_SUMMARIES.c.created_at).where(_SUMMARIES.c.plan_digest == before)
                created_at = connection.execute(query).scalar()
                if created_at is None:
                    raise UnknownPlan
                older_than = (created_at, before)
            rows = connection.execute(page_query(limit=limit, older_than=older_than, name=name)).mappings()
            return [PlanSummary(**row) for row in rows]


def page_query(*, limit: int, older_than: tuple[float, str] | None, name: str | None) -> Select[Any]:
    """Return the query of one page; ``older_than`` is time and digest of the last plan of the page before."""
    place = tuple_(_SUMMARIES.c.created_at, _SUMMARIES.c.plan_digest)
    query = select(*_LISTED).order_by(_SUMMARIES.c.created_at.desc(), _SUMMARIES.c.plan_digest.desc()).limit(limit)
    if name is not None:
        query = query.where(_SUMMARIES.c.name == name)
    return query if older_than is None else query.where(place < tuple_(*older_than))


def keep_summary(connection: Connection, summary: PlanSummary) -> None:
    """Keep the summary of a plan, unless it has one; called after the plan was inserted, in its transaction.

    Whoever inserts the same plan at the same time waits for the other there, so that nobody does here.
    """
    known = select(_SUMMARIES.c.plan_digest).where(_SUMMARIES.c.plan_digest == summary.plan_digest)
    if connection.execute(known).first() is None:
        digests = select(tables.solves.c.spec_digest, tables.solves.c.request_digest)
        row = connection.execute(digests.where(tables.solves.c.id == summary.solve_id)).mappings().first()
        connection.execute(insert(_SUMMARIES).values(**asdict(summary), **(row or {})))


def add_missing_summaries(connection: Connection) -> None:
    """Summarise the plans that were published before there were summaries; once, when a database is upgraded."""
    plans, solves = tables.plans, tables.solves
    finished = select(solves.c.id, solves.c.result).where(solves.c.result.is_not(None)).order_by(solves.c.ended_at)
    first_solve: dict[str, str] = {}
    for solve_id, result in connection.execute(finished):
        first_solve.setdefault(_plan_of(result), solve_id)
    missing = plans.c.digest.not_in(select(_SUMMARIES.c.plan_digest))
    for digest in connection.execute(select(plans.c.digest).where(missing)).scalars().all():
        row = connection.execute(select(plans.c.document, plans.c.created_at).where(plans.c.digest == digest)).one()
        plan = json.loads(unpacked(row.document))
        summary = PlanSummary.of_document(plan, solve_id=first_solve.get(digest), created_at=row.created_at)
        keep_summary(connection, summary)


def _plan_of(result: Mapping[str, object]) -> str:
    return str(result.get("plan_digest"))
