"""What the service says about a plan from anywhere."""

from pydantic import Field

from api.schemas.base import Document
from api.schemas.solve import IssueDocument


class RankDocument(Document):
    """One rank under a plan."""

    rank: int = Field(description="Rank.", examples=[0])
    host: int = Field(description="Its host.", examples=[0])
    seconds: dict[str, float] = Field(description="By phase. Unit: seconds.")
    bytes: dict[str, int] = Field(description="Taken by tables, by tier. Unit: bytes.")
    capacity_bytes: dict[str, int] = Field(description="After reservations, by tier. Unit: bytes.")
    ledger_bytes: dict[str, int] = Field(description="What takes the bytes of the tables, line by line. Unit: bytes.")
    reserved_bytes: dict[str, int] = Field(description="What tables may not use, line by line. Unit: bytes.")


class PhaseDocument(Document):
    """One phase over all ranks."""

    name: str = Field(description="Phase.", examples=["forward_compute"])
    slowest_rank: int = Field(description="The rank that all wait for.", examples=[3])
    seconds: float = Field(description="Of the slowest rank. Unit: seconds.")
    mean_seconds: float = Field(description="Over all ranks. Unit: seconds.")
    hidden_seconds: float = Field(description="Hidden under dense compute. Unit: seconds.")
    counted: bool = Field(description="Whether the objective counts it.")
    evidence: str = Field(description="The weakest number in it.", examples=["measured"])


class ScoreDocument(Document):
    """What a plan costs under the cost model of the spec."""

    objective: str = Field(description="Name of the objective.", examples=["step_time"])
    objective_seconds: float = Field(description="Unit: seconds.")
    step_time_seconds: float = Field(description="Unit: seconds.")
    max_rank_time_seconds: float = Field(description="Unit: seconds.")
    cost_model: str = Field(description="Model and version.", examples=["roofline@1"])
    ranks: list[RankDocument]
    phases: list[PhaseDocument]


class EvaluationDocument(Document):
    """Whether a plan may be used, and what it costs."""

    valid: bool = Field(
        description="Whether it breaks no rule of the runtime, of memory and of the spec, and states no false digest."
    )
    num_violations: int = Field(description="Broken rules in all.", examples=[0])
    violations: list[IssueDocument] = Field(description="Broken rules, at most 50.")
    warnings: list[IssueDocument] = Field(
        default_factory=list, description="What is odd and breaks no rule, such as a plan made for another spec."
    )
    score: ScoreDocument | None = Field(
        description="null where the geometry is no partition of the tables, or where an invalid plan has no price."
    )
