"""What lists of plans show, and what the service may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* A plan that is published with a summary is listed from then on; its summary is that of the first
  publication, as its bytes are.
* Listing plans reads summaries alone, through an index: it takes as long with many plans as with few.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """What is told of a plan without its document."""

    plan_digest: str
    name: str
    created_at: float  # seconds since the epoch
    world_size: int
    hardware_profile: str
    cost_model: str
    objective_name: str
    objective_seconds: float
    lower_bound_seconds: float
    relative_gap: float | None
    solve_id: str | None  # of the first publication; None where that solve is not there any more

    @classmethod
    def of_document(cls, plan: Mapping[str, Any], *, solve_id: str | None, created_at: float) -> "PlanSummary":
        """Return the summary of a plan document; its tables are not looked at."""
        objective, provenance = plan["objective"], plan["provenance"]
        return cls(
            plan_digest=plan["plan_digest"],
            name=plan["name"],
            created_at=created_at,
            world_size=plan["world_size"],
            hardware_profile=provenance["hardware_profile"],
            cost_model=provenance["cost_model"],
            objective_name=objective["name"],
            objective_seconds=objective["seconds"],
            lower_bound_seconds=objective["lower_bound_seconds"],
            relative_gap=objective["relative_gap"],
            solve_id=solve_id,
        )


class PlanListStore(Protocol):
    """Lists of plans."""

    def plan_summaries(self, *, limit: int, before: str | None, name: str | None) -> list[PlanSummary]:
        """Return summaries of plans, newest first, those older than the plan with the digest ``before``.

        Raises ``UnknownPlan`` where that plan is not listed.
        """
        ...
