"""Published plans, and the lists of them.

* The bytes behind a digest never change.
* A plan that is published with a summary is listed from then on; summary and bytes are those of the first publication.
* A list reads summaries alone, through an index: it takes as long with many plans as with few.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Select, insert, select, tuple_

from api.store.sql import tables
from api.store.sql.blobs import unpacked
from api.store.sql.repository import TenantRepository

_SUMMARIES = tables.plan_summaries
_LISTED = [column for column in _SUMMARIES.c if column.name not in ("tenant", "spec_digest", "request_digest")]


class UnknownPlan(Exception):
    """No plan of this digest is published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """What lists show of a plan."""

    plan_digest: str
    name: str
    created_at: float  # seconds since the epoch
    world_size: int
    job_world_size: int | None  # None: that of the plan, which is for one group of all ranks
    hardware_profile: str
    cost_model: str
    objective_name: str
    objective_seconds: float
    lower_bound_seconds: float
    relative_gap: float | None
    solve_id: str | None  # of the first publication; None if that solve was deleted

    @classmethod
    def of_document(cls, plan: Mapping[str, Any], *, solve_id: str | None, created_at: float) -> "PlanSummary":
        """Return the summary of a plan document; it does not read the tables."""
        objective, provenance, groups = plan["objective"], plan["provenance"], plan.get("replica_groups")
        return cls(
            plan_digest=plan["plan_digest"],
            name=plan["name"],
            created_at=created_at,
            world_size=plan["world_size"],
            job_world_size=None if groups is None else groups["world_size"],
            hardware_profile=provenance["hardware_profile"],
            cost_model=provenance["cost_model"],
            objective_name=objective["name"],
            objective_seconds=objective["seconds"],
            lower_bound_seconds=objective["lower_bound_seconds"],
            relative_gap=objective["relative_gap"],
            solve_id=solve_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A published plan."""

    digest: str
    canonical: bytes  # canonical bytes of the plan document
    created_at: float
    summary: PlanSummary | None = None  # without a summary, lists do not show the plan


class Plans(TenantRepository):
    """Plans of one tenant."""

    def plan_summaries(self, *, limit: int, before: str | None, name: str | None) -> list[PlanSummary]:
        """Return summaries of plans, newest first, those older than the plan with the digest ``before``.

        Raises ``UnknownPlan`` if that plan is not listed.
        """
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

    def plan(self, digest: str) -> PlanRecord | None:
        plans = tables.plans.c
        query = select(plans.document, plans.created_at).where(plans.tenant == self._tenant, plans.digest == digest)
        with self._readers.begin() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        return PlanRecord(digest=digest, canonical=unpacked(row.document), created_at=row.created_at)


def page_query(tenant: str, *, limit: int, older_than: tuple[float, str] | None, name: str | None) -> Select[Any]:
    """Return the query of one page; ``older_than`` is time and digest of the last plan of the page before."""
    place = tuple_(_SUMMARIES.c.created_at, _SUMMARIES.c.plan_digest)
    newest_first = (_SUMMARIES.c.created_at.desc(), _SUMMARIES.c.plan_digest.desc())
    query = select(*_LISTED).where(_SUMMARIES.c.tenant == tenant).order_by(*newest_first).limit(limit)
    if name is not None:
        query = query.where(_SUMMARIES.c.name == name)
    return query if older_than is None else query.where(place < tuple_(*older_than))


def insert_summary(connection: Connection, tenant: str, summary: PlanSummary) -> None:
    """Insert the summary of a tenant's plan, unless it has one, in the transaction that has inserted the plan."""
    same = (_SUMMARIES.c.tenant == tenant) & (_SUMMARIES.c.plan_digest == summary.plan_digest)
    if connection.execute(select(1).where(same)).first() is None:
        digests = select(tables.solves.c.spec_digest, tables.solves.c.request_digest)
        row = connection.execute(digests.where(tables.solves.c.id == summary.solve_id)).mappings().first()
        connection.execute(insert(_SUMMARIES).values(tenant=tenant, **asdict(summary), **(row or {})))


def add_missing_summaries(connection: Connection) -> None:
    """Insert the summaries of plans from before there were summaries; once, when a database is upgraded."""
    plans, solves = tables.plans, tables.solves
    finished = select(solves.c.tenant, solves.c.id, solves.c.result).where(solves.c.result.is_not(None))
    first_solve: dict[tuple[str, str], str] = {}
    for tenant, solve_id, result in connection.execute(finished.order_by(solves.c.ended_at)):
        first_solve.setdefault((tenant, str(result.get("plan_digest"))), solve_id)
    known = (_SUMMARIES.c.tenant == plans.c.tenant) & (_SUMMARIES.c.plan_digest == plans.c.digest)
    missing = select(plans.c.tenant, plans.c.digest).where(~select(1).where(known).exists())
    for tenant, digest in connection.execute(missing).all():
        this = (plans.c.tenant == tenant) & (plans.c.digest == digest)
        row = connection.execute(select(plans.c.document, plans.c.created_at).where(this)).one()
        plan = json.loads(unpacked(row.document))
        summary = PlanSummary.of_document(plan, solve_id=first_solve.get((tenant, digest)), created_at=row.created_at)
        insert_summary(connection, tenant, summary)
