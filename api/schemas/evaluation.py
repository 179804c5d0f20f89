"""What the service says about a plan from anywhere."""

from pydantic import Field

from api.schemas.base import Document
from api.schemas.checkpoint import CheckpointDocument
from api.schemas.prediction import PredictionDocument
from api.schemas.solve import IssueDocument


class RankDocument(Document):
    """One rank under a plan."""

    rank: int = Field(description="Rank.", examples=[0])
    host: int = Field(description="Its host.", examples=[0])
    seconds: dict[str, float] = Field(description="By phase. Unit: seconds.")
    bytes: dict[str, int] = Field(description="Taken by tables, by tier. Unit: bytes.")
    capacity_bytes: dict[str, int] = Field(description="After reservations, by tier. Unit: bytes.")
    ledger_bytes: dict[str, dict[str, int]] = Field(
        description="What takes the bytes of the tables, by tier and there line by line. Unit: bytes."
    )
    reserved_bytes: dict[str, dict[str, int]] = Field(
        description="What tables may not use, by tier and there line by line. Unit: bytes."
    )


class PhaseDocument(Document):
    """One phase over all ranks."""

    name: str = Field(description="Phase.", examples=["forward_compute"])
    slowest_rank: int = Field(description="The rank that all wait for.", examples=[3])
    seconds: float = Field(description="Of the slowest rank. Unit: seconds.")
    mean_seconds: float = Field(description="Over all ranks. Unit: seconds.")
    hidden_seconds: float = Field(description="Hidden under dense compute. Unit: seconds.")
    counted: bool = Field(description="Whether the objective counts it.")
    evidence: str = Field(description="The weakest number in it.", examples=["measured"])


class TierDocument(Document):
    """A tier beside the accelerator's memory, on the rank where it is busiest."""

    name: str = Field(description="Tier.", examples=["ddr"])
    busiest_rank: int = Field(description="The rank that keeps it busy for longest.", examples=[3])
    read_bytes: int = Field(description="In one step. Unit: bytes.")
    written_bytes: int = Field(description="In one step. Unit: bytes.")
    operations: int = Field(description="Of block storage, in one step.")
    busy_seconds: float = Field(description="In one step. Unit: seconds.")
    utilization: float = Field(description="Busy share of a step with its dense part; at most 1 in a plan.")


class ServingDocument(Document):
    """What requests ask of the cards of a host, and what the host sustains."""

    samples_per_request: int = Field(description="Unit: samples.", examples=[168])
    num_messages: int = Field(description="Between the host and all its cards, for one request.", examples=[12])
    busiest_rank: int = Field(description="The card that is busy for longest.", examples=[3])
    busy_seconds: float = Field(description="Of that card, with one request. Unit: seconds.")
    requests_per_second: float | None = Field(description="As asked; null where no rate was.", examples=[500])
    utilization: float | None = Field(description="Busy share of that card's time at this rate.", examples=[0.4])
    utilization_limit: float = Field(description="Largest busy share that is allowed.", examples=[0.8])
    sustained_requests_per_second: float | None = Field(
        description="Highest rate within the limit; null where nothing is looked up.", examples=[1000]
    )


class ScoreDocument(Document):
    """What a plan costs under the cost model of the spec."""

    objective: str = Field(description="Name of the objective.", examples=["step_time"])
    objective_seconds: float = Field(description="Unit: seconds.")
    step_time_seconds: float | None = Field(description="null where requests are served. Unit: seconds.")
    max_rank_time_seconds: float | None = Field(description="null where requests are served. Unit: seconds.")
    cost_model: str = Field(description="Model and version.", examples=["roofline@1"])
    ranks: list[RankDocument]
    phases: list[PhaseDocument]
    tiers: list[TierDocument]
    checkpoint: CheckpointDocument | None = Field(
        default=None, description="What checkpoints take; null where the spec says nothing of them."
    )
    serving: ServingDocument | None = Field(description="Where requests are served; null of a training step.")
    prediction: PredictionDocument | None = Field(
        default=None, description="How well a learned model knows these seconds; null of other models."
    )


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
