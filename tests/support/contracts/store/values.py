"""Values that the contracts of the store share."""

from dataclasses import replace

from api.store.database import Database
from api.store.plans.plans import PlanRecord, PlanSummary
from api.store.solves.records import NewSolve
from api.store.tenants import DEFAULT_TENANT

DIGEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64


def solve_id(number: int) -> str:
    return f"{number:012x}"


def new_solve(number: int, *, request: str | None = None) -> NewSolve:
    return NewSolve(
        id=solve_id(number),
        request_digest=request or f"request-{number}",
        spec_digest=f"spec-{number}",
        spec_bytes=b'{"n":%d}' % number,
        name=f"name-{number}",
        assumptions=[{"subject": "s", "value": "v"}],
        warnings=[{"code": "c"}],
        created_at=float(number),
    )


def plan(digest: str = DIGEST, canonical: bytes = b"{}") -> PlanRecord:
    return PlanRecord(digest=digest, canonical=canonical, created_at=1.0)


def publish(database: Database, number: int, record: PlanRecord) -> None:
    """Solve something for the default tenant, and publish a plan for it."""
    database.for_tenant(DEFAULT_TENANT).accept(new_solve(number), max_queued=100, reuse=True)
    assert database.finish(solve_id(number), state="succeeded", now=9.0, result={"plan_digest": "x"}, plan=record)


def digest_of(number: int) -> str:
    return f"sha256:{number:064x}"


def summary(number: int, **changes: object) -> PlanSummary:
    made = PlanSummary(
        plan_digest=digest_of(number),
        name=f"name-{number % 2}",
        created_at=float(number),
        world_size=8,
        job_world_size=None if number % 2 else 16,
        hardware_profile="h",
        cost_model="roofline@1",
        objective_name="step_time",
        objective_seconds=2.0,
        lower_bound_seconds=1.0,
        relative_gap=1.0,
        solve_id=solve_id(number),
    )
    return replace(made, **changes)
