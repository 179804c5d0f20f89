"""What a plan is compared with: plans that need no search of ours."""

from dataclasses import dataclass

TORCHREC_GREEDY = "torchrec_greedy"
TABLE_WISE_BY_SIZE = "table_wise_by_size"
PREVIOUS_PLAN = "previous_plan"

#: What a baseline came to: a plan that a job can train with; a plan that breaks a rule; no plan, for none fits; or it
#: was not made.
LEGAL, ILLEGAL, NO_PLAN, NOT_MADE = "legal", "illegal", "no_plan", "not_made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Another plan of the same problem, priced and checked as the plan itself."""

    name: str
    state: str  # LEGAL, ILLEGAL, NO_PLAN or NOT_MADE
    objective_seconds: float | None = None  # None if there is no such plan, or if it cannot be priced
    issue: str = ""  # why there is none, or what is wrong with the plan
    detail: str = ""  # how the plan was made
