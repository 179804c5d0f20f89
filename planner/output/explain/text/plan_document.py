"""The parts of a plan document that the texts read, as types.

The document itself is built by :mod:`planner.output.exporters.generic`; whoever hands one over has
checked it (the service and the command line do so at their edge).
"""

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class ShardEntry(TypedDict):
    """One rectangle of a table on one rank."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int
    tier: str
    bytes: int


class TableEntry(TypedDict):
    """One table: how it is cut, and where the pieces are."""

    name: str
    sharding_type: str
    compute_kernel: str
    cache_load_factor: NotRequired[float | None]
    data_type: NotRequired[str]
    shards: list[ShardEntry]


class RankEntry(TypedDict):
    """One rank: seconds by phase, bytes by tier."""

    rank: int
    host: int
    seconds: Mapping[str, float]
    bytes: Mapping[str, float]
    capacity_bytes: Mapping[str, float]
    ledger_bytes: NotRequired[Mapping[str, Mapping[str, float]]]
    reserved_bytes: NotRequired[Mapping[str, Mapping[str, float]]]


class TierEntry(TypedDict):
    """One tier beside the accelerators' memory, on its busiest rank."""

    name: str
    busiest_rank: int
    read_bytes: int
    written_bytes: int
    busy_seconds: float
    utilization: float


class PhaseEntry(TypedDict):
    """One phase over all ranks."""

    name: str
    slowest_rank: int
    seconds: float
    mean_seconds: float
    hidden_seconds: NotRequired[float]
    counted: NotRequired[bool]
    evidence: NotRequired[str]


class ObjectiveEntry(TypedDict):
    """What was minimised, and how far from optimal it is at most."""

    name: str
    seconds: float
    lower_bound_seconds: float
    relative_gap: float | None  # None where the bound is 0 and the plan is not
    step_time_seconds: NotRequired[float | None]  # None of a request
    max_rank_time_seconds: NotRequired[float | None]


class TerminationEntry(TypedDict):
    """Why the search stopped."""

    reason: str
    limit: str | None
    detail: str


class EvidenceEntry(TypedDict):
    """One number or default that the plan rests on."""

    value: str
    evidence: str
    source: str


class ProvenanceEntry(TypedDict):
    """Who made the plan, with what."""

    cost_model: str
    hardware_profile: str
    partitioner: NotRequired[str]
    evidence: Mapping[str, EvidenceEntry]
    seed: int
    solver_seconds: float
    versions: Mapping[str, str]


class RankBytesEntry(TypedDict):
    """A rank and its bytes."""

    rank: int
    bytes: int


class MovementEntry(TypedDict):
    """What moves from the previous plan."""

    previous_plan_digest: str | None
    moved_bytes: int
    kept_bytes: int
    new_bytes: int
    most_sent: RankBytesEntry
    most_received: RankBytesEntry
    num_rank_pairs: int
    seconds: float | None
    link_evidence: str | None
    previous_objective_seconds: float | None
    previous_issue: str | None
    saved_seconds_per_step: float | None
    break_even_steps: int | None
    max_moved_bytes: float | None


class CheckpointSizeEntry(TypedDict):
    """One kind of checkpoint."""

    bytes: int
    snapshot_seconds: float
    slowest_rank: int
    upload_seconds: float
    slowest_host: int
    mean_upload_seconds: float


class CheckpointEntry(TypedDict):
    """What checkpoints take."""

    policy: str
    full_every: int
    interval_steps: int
    interval_seconds: float
    full: CheckpointSizeEntry
    incremental: CheckpointSizeEntry | None
    restore_seconds: float
    lost_seconds_per_step: float
    balanced: bool
    snapshot_evidence: str
    warning: str | None


class ServingEntry(TypedDict):
    """What requests ask of the cards, and what the host sustains."""

    samples_per_request: int
    num_messages: int
    busiest_rank: int
    busy_seconds: float
    requests_per_second: float | None
    utilization: float | None
    utilization_limit: float
    sustained_requests_per_second: float | None


class FallbackEntry(TypedDict):
    """Shards outside the measured range."""

    table: str
    num_shards: int
    reason: str


class AnalyticPhaseEntry(TypedDict):
    """A phase with a collective that the model does not price."""

    phase: str
    reason: str


class SharesEntry(TypedDict):
    """Parts of the seconds by where they come from."""

    learned: float
    measured: float
    analytic: float


class PredictionEntry(TypedDict):
    """How well a learned model knows the seconds."""

    coverage: float
    lower_seconds: float
    upper_seconds: float
    shares: SharesEntry
    num_fallbacks: int
    fallbacks: list[FallbackEntry]
    analytic_phases: NotRequired[list[AnalyticPhaseEntry]]


class SurrogateEntry(TypedDict):
    """The additive model that a plan was searched with."""

    seconds: float
    lower_bound_seconds: float
    relative_gap: float | None
    round: int
    num_rounds: int
    moved_shards: NotRequired[int]


class PlanDocument(TypedDict):
    """A plan as launchers fetch it."""

    plan_digest: str
    spec_digest: str
    name: str
    world_size: int
    ranks_per_host: int
    objective: ObjectiveEntry
    termination: TerminationEntry
    tables: list[TableEntry]
    ranks: list[RankEntry]
    tiers: NotRequired[list[TierEntry]]
    phases: list[PhaseEntry]
    provenance: ProvenanceEntry
    movement: NotRequired[MovementEntry | None]
    checkpoint: NotRequired[CheckpointEntry | None]
    serving: NotRequired[ServingEntry | None]
    prediction: NotRequired[PredictionEntry | None]
    surrogate: NotRequired[SurrogateEntry | None]
