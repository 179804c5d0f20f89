"""A finished plan: the placement, what it costs, and how good it is known to be."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cost_models.vocabulary import Evidence, Phase, Scheme, Tier
from planner.domain.plan.baseline import Baseline
from planner.domain.plan.diagnosis import Diagnosis
from planner.domain.plan.goals import GoalResult
from planner.domain.plan.growth import TableGrowth
from planner.domain.plan.index_dedup import IndexDedupLoad, IndexDedupSetting
from planner.domain.plan.kv_cache import KvCacheLoad, KvCacheSize
from planner.domain.plan.movement import Movement
from planner.domain.plan.placement import Placement
from planner.domain.plan.replicas import GroupSize, ReplicaLoad
from planner.domain.plan.stash import StashLoad
from planner.domain.plan.step_memory import StepMemory
from planner.domain.plan.whole_step import WholeStep
from planner.domain.problem.checkpoint import CheckpointLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLoad:
    """One rank's seconds and bytes under a plan."""

    rank: int
    host: int
    seconds: Mapping[Phase, float]
    bytes: Mapping[Tier, float]
    capacity_bytes: Mapping[Tier, float]  # after reservations
    #: named lines that sum to ``bytes`` of each tier: weights, optimizer_state, ...
    ledger_bytes: Mapping[Tier, Mapping[str, float]]
    #: named lines taken off the rank's memory before tables, by tier: margin, dense_parameters, ...
    reserved_bytes: Mapping[Tier, Mapping[str, float]]
    lookups: float | None = None  # in one step, of the rows that it really holds
    id_bytes: float | None = None  # of the ids that reach it in one step
    #: what TorchRec's planner believes that tables take, by tier; ``None`` unless its estimator prices the plan
    torchrec_bytes: Mapping[Tier, float] | None = None
    step_memory: StepMemory | None = None  # of the device over a training step; None where requests are served


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLoad:
    """One phase over all ranks."""

    phase: Phase
    slowest_rank: int
    seconds: float  # of the slowest rank
    mean_seconds: float
    hidden_seconds: float  # of ``seconds``, hidden under dense compute
    counted: bool  # whether the objective counts this phase
    evidence: Evidence  # the weakest number in it
    #: of the rank with the largest: between these its time lies, as far as the model knows; None if that says nothing
    lower_seconds: float | None = None
    upper_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLoad:
    """One tier other than the device's memory, on the rank where it is busiest."""

    tier: Tier
    busiest_rank: int
    read_bytes: float  # in one step
    written_bytes: float
    operations: float  # of block storage
    busy_seconds: float
    utilization: float  # of one step with its dense part; at most 1 in a plan


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLoad:
    """What a step pays once, on every rank, for the tables of a module that have one sharding type."""

    module: str  # path; "" where the spec gives none
    sharding_type: Scheme
    phase_seconds: Mapping[Phase, float]  # of the phases in which anything starts
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What requests ask of the cards of a host, and what the host sustains."""

    samples_per_request: int
    num_messages: int  # between the host and all its cards, for one request
    busiest_rank: int
    busy_seconds: float  # of that card, with one request
    requests_per_second: float | None  # as asked
    utilization: float | None  # busy share of that card's time, at the rate that was asked for
    utilization_limit: float
    sustained_requests_per_second: float | None  # within the limits; None where nothing is looked up
    p99_limit_seconds: float | None  # as asked
    #: within which half, and 99 of 100, of requests that come at random are answered; None without a rate that can be
    p50_seconds: float | None
    p99_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """Shards that a learned model was not trained for, and that its analytic model priced."""

    table: str
    num_shards: int
    reason: str  # "lookups 3e+09 of a shard; measured were 1 to 2e+07"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticPhase:
    """A phase with a collective that a learned model does not price, and that its analytic model priced."""

    phase: Phase
    reason: str  # "all_to_all over several hosts was not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """How well a model knows the seconds of a plan."""

    coverage: float  # probability that each rank's time in each phase lies within its own interval
    #: the objective with all of them at their lower, and at their upper limit
    lower_seconds: float
    upper_seconds: float
    #: shares of the seconds of all ranks, which add up to 1: learned; analytic, from measured rates alone; analytic
    learned_share: float
    measured_share: float
    analytic_share: float
    fallbacks: tuple[Fallback, ...]
    analytic_phases: tuple[AnalyticPhase, ...]  # in the order of a step, one for each reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a placement costs under one cost model, computed from its geometry alone."""

    objective: str
    objective_seconds: float
    #: both objectives of a training step, for comparison; None of a request, which has no such step
    step_time_seconds: float | None
    max_rank_time_seconds: float | None
    ranks: tuple[RankLoad, ...]
    phases: tuple[PhaseLoad, ...]
    tiers: tuple[TierLoad, ...]  # those that anything is read from
    #: bytes of every shard in all tiers together, (num_shards,), in the order of placement.tables and their shards
    shard_bytes: NDArray[np.float64]
    cost_model: str  # "roofline@2"
    #: names of the hardware numbers that the seconds and capacities rest on
    hardware_numbers: frozenset[str]
    checkpoint: CheckpointLoad | None = None  # where the problem says how the job is checkpointed
    serving: ServingLoad | None = None  # of a request
    kv_cache: KvCacheLoad | None = None  # where keys and values of users lie next to the tables
    prediction: Prediction | None = None  # of a model that knows its errors
    whole_step: WholeStep | None = None  # of a training step of which the dense part is known
    stash: StashLoad | None = None  # where the problem lets weights leave the device
    growth: tuple[TableGrowth, ...] = ()  # of hash tables that grow with their ids
    starts: tuple[StartLoad, ...] = ()  # in the seconds of every rank; () where none are priced
    replica_groups: ReplicaLoad | None = None  # where the tables are sharded inside groups of the job's ranks
    index_dedup: IndexDedupLoad | None = None  # where the problem deduplicates ids, or leaves that open


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something that was not in the spec and had to be assumed, or a number and its evidence."""

    subject: str  # "model.pipeline", "hardware.hbm_bytes_per_second", "tables.cat_5"
    value: str
    evidence: str  # an Evidence label, "default" or "note"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrogate:
    """The additive model that a plan was searched with, where the cost model judges whole plans only."""

    seconds: float  # the plan's objective under it
    lower_bound_seconds: float  # of all plans, under it
    relative_gap: float | None
    round: int  # the first is the model's own additive prices, later ones are linear near the best plan before
    num_rounds: int
    moved_shards: int  # that went to another rank after the search, as the model of whole ranks advised


@dataclass(frozen=True, slots=True, kw_only=True)
class GapParts:
    """What the seconds between a plan and its bound consist of; the first three add up to them."""

    balance_seconds: float  # the most that other ranks for the same shards can gain
    packing_seconds: float  # lost because no placement spreads the shards evenly
    choice_seconds: float  # what the shards cost, spread evenly, above the choices that the bound mixes
    refuted_seconds: float  # by which branching raised the bound
    is_bound_final: bool  # whether a longer solve cannot raise the bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The immutable result of a solve."""

    placement: Placement
    evaluation: Evaluation
    lower_bound_seconds: float
    relative_gap: float | None  # objective / bound - 1; None where the bound is zero
    reason: str
    limit: str | None
    detail: str
    partitioner: str  # which one found it
    solver_seconds: float  # the whole search
    assumptions: tuple[Assumption, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    movement: Movement | None = None  # from the plan that ran before, where there is one
    surrogate: Surrogate | None = None
    found_seconds: float | None = None  # from the beginning of the search until this plan; None where none was made
    late_gain_seconds: float | None = None  # of the second half of the solve; None if the first half found no plan
    gap_parts: GapParts | None = None  # None of proven plans, and where the bound is not of this search
    goals: tuple[GoalResult, ...] = ()  # in their order; () where the objective is all
    group_sizes: tuple[GroupSize, ...] = ()  # all that were considered, in increasing order; () without a choice
    kv_cache_sizes: tuple[KvCacheSize, ...] = ()  # the same of the cache of keys and values
    index_dedup_settings: tuple[IndexDedupSetting, ...] = ()  # those that were considered; () without a choice
    baselines: tuple[Baseline, ...] = ()  # what the plan is compared with; () of plans that nothing was compared with


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """A resource that is short, by how much, and the way out."""

    resource: str  # a tier ("hbm", "ddr", ...), "options", "constraints"
    required_bytes: float
    available_bytes: float
    scope: str  # "cluster", "rank", "table"
    message: str
    hint: str
    table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """What the pipeline returns: a plan, or why there is none."""

    plan: Plan | None
    reason: str  # OPTIMAL, FEASIBLE, INFEASIBLE or NO_SOLUTION_FOUND
    limit: str | None
    detail: str
    lower_bound_seconds: float
    shortfalls: tuple[Shortfall, ...] = ()
    diagnosis: Diagnosis | None = None  # of a result without a plan
