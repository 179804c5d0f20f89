"""Summaries of plans in a database: written with the plan, listed through an index."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Engine, Select, insert, select, tuple_

from api.store.contract.store import UnknownPlan
from api.store.plans.records import PlanSummary
from api.store.sql import tables
from api.store.sql.blobs import unpacked

_SUMMARIES = tables.plan_summaries
_LISTED = [column for column in _SUMMARIES.c if column.name not in ("tenant", "spec_digest", "request_digest")]


class PlanSummaries:
    """Fulfils ``api.store.plans.records.PlanListStore`` over an engine that reads."""

    _readers: Engine
    _tenant: str

    def plan_summaries(self, *, limit: int, before: str | None, name: str | None) -> list[PlanSummary]:
        """Return summaries of plans, newest first."""
        with self._readers.begin() as connection:
            older_than = None
            if before is not None:
                last = (_SUMMARIES.c.tenant == self._tenant) & (_SUMMARIES.c.plan_digest == before)
                created_at = connection.execute(select(_SUMMARIES.c.created_at).where(last)).scalar()
                if created_at is None:
                    raise UnknownPlan
                older_than = (created_at, before)
            query = page_query(self._tenant, limit=limit, older_than=older_than, name=name)
            return [PlanSummary(**row) for row in connection.execute(query).mappings()]


def page_query(tenant: str, *, limit: int, older_than: tuple[float, str] | None, name: str | None) -> Select[Any]:
    """Return the query of one page; ``older_than`` is time and digest of the last plan of the page before."""
    place = tuple_(_SUMMARIES.c.created_at, _SUMMARIES.c.plan_digest)
    newest_first = (_SUMMARIES.c.created_at.desc(), _SUMMARIES.c.plan_digest.desc())
    query = select(*_LISTED).where(_SUMMARIES.c.tenant == tenant).order_by(*newest_first).limit(limit)
    if name is not None:
        query = query.where(_SUMMARIES.c.name == name)
    return query if older_than is None else query.where(place < tuple_(*older_than))


def keep_summary(connection: Connection, tenant: str, summary: PlanSummary) -> None:
    """Keep the summary of a tenant's plan, unless it has one; called after the plan was inserted, in its transaction.

    Whoever inserts the same plan at the same time waits for the other there, so that nobody does here.
    """
    same = (_SUMMARIES.c.tenant == tenant) & (_SUMMARIES.c.plan_digest == summary.plan_digest)
    if connection.execute(select(1).where(same)).first() is None:
        digests = select(tables.solves.c.spec_digest, tables.solves.c.request_digest)
        row = connection.execute(digests.where(tables.solves.c.id == summary.solve_id)).mappings().first()
        connection.execute(insert(_SUMMARIES).values(tenant=tenant, **asdict(summary), **(row or {})))


def add_missing_summaries(connection: Connection) -> None:
    """Summarise the plans that were published before there were summaries; once, when a database is upgraded."""
    plans, solves = tables.plans, tables.solves
    finished = select(solves.c.tenant, solves.c.id, solves.c.result).where(solves.c.result.is_not(None))
    first_solve: dict[tuple[str, str], str] = {}
    for tenant, solve_id, result in connection.execute(finished.order_by(solves.c.ended_at)):
        first_solve.setdefault((tenant, _plan_of(result)), solve_id)
    known = (_SUMMARIES.c.tenant == plans.c.tenant) & (_SUMMARIES.c.plan_digest == plans.c.digest)
    missing = select(plans.c.tenant, plans.c.digest).where(~select(1).where(known).exists())
    for tenant, digest in connection.execute(missing).all():
        this = (plans.c.tenant == tenant) & (plans.c.digest == digest)
        row = connection.execute(select(plans.c.document, plans.c.created_at).where(this)).one()
        plan = json.loads(unpacked(row.document))
        summary = PlanSummary.of_document(plan, solve_id=first_solve.get((tenant, digest)), created_at=row.created_at)
        keep_summary(connection, tenant, summary)


def _plan_of(result: Mapping[str, object]) -> str:
    return str(result.get("plan_digest"))
