"""The plan document: every field, its type, what it says, and an example. All other descriptions come from this one.

The builder returns these types, texts and exporters read them, :mod:`api.schemas.described` makes the models of the
service and their OpenAPI components of them, and the types of the launcher's client are generated from them.
:mod:`planner.output.compact_plan_document` has what the compact form has in the place of long lists.

A text in ``Annotated`` is the description of a field. A nullable field may be missing in documents of earlier versions,
which did not have it: readers use ``get``. What is in a table, but for ``bytes`` of a shard, is in the digest of the
plan: a new field there gives equal plans another digest.
"""

from typing import Annotated, Literal, NotRequired, TypedDict

from planner.output.checkpoint_document import CheckpointDocument
from planner.output.field_example import Example
from planner.output.growth_document import TableGrowthDocument
from planner.output.index_dedup_document import IndexDedupDocument
from planner.output.kv_cache_document import KvCacheDocument
from planner.output.replica_groups_document import ReplicaGroupsDocument, ReplicaSyncDocument


class ShardDocument(TypedDict):
    """A rectangle of a table on one rank, in one memory tier."""

    rank: Annotated[int, "Rank that holds it.", Example(0)]
    row_offset: Annotated[int, "First row. Unit: rows.", Example(0)]
    num_rows: Annotated[int, "Number of rows. Unit: rows.", Example(5_000_000)]
    column_offset: Annotated[int, "First column. Unit: columns.", Example(0)]
    num_columns: Annotated[int, "Number of columns. Unit: columns.", Example(128)]
    tier: Annotated[str, "Memory tier.", Example("hbm")]
    bytes: Annotated[int, "In all tiers together; outside the digest. Unit: bytes.", Example(2_580_000_000)]


class TableFactsDocument(TypedDict):
    """One table's scheme and kernel."""

    name: Annotated[str, "Name of the table.", Example("cat_0")]
    module_path: NotRequired[Annotated[str, "Path of its embedding module.", Example("")]]
    data_type: NotRequired[Annotated[str, "Type of the weights.", Example("fp32")]]
    pooling: NotRequired[Annotated[str, "How bags become rows.", Example("sum")]]
    hash_table_mode: NotRequired[Annotated[str, "Mode of its hash table, if it has one.", Example("mpzch")]]
    sharding_type: Annotated[str, "Scheme.", Example("row_wise")]
    compute_kernel: Annotated[str, "Kernel.", Example("fused")]
    cache_load_factor: Annotated[float | None, "Cached share of the rows.", Example(None)]
    cache_reserved_bytes: NotRequired[
        Annotated[
            float,
            "Device memory that FBGEMM leaves free when it allocates the cache. Tables with different values never"
            " share a cache; a value below 1 leaves nothing free, and only separates tables. Unit: bytes.",
            Example(0.002),
        ]
    ]
    stash_weights: NotRequired[
        Annotated[
            bool, "Weights leave the device between the lookups of a step and their backward pass.", Example(True)
        ]
    ]


class TableDocument(TableFactsDocument):
    """One table's scheme, kernel and shards, in the order of the runtime."""

    shards: Annotated[
        list[ShardDocument],
        "The shards, at most two per rank of the largest cluster. A data_parallel table lists one full copy per rank.",
    ]


class ObjectiveDocument(TypedDict):
    """How good a plan is."""

    name: Annotated[str, "Objective that the plan was made for.", Example("step_time")]
    seconds: Annotated[float, "Unit: seconds.", Example(0.004)]
    lower_bound_seconds: Annotated[float, "No plan is better than this. Unit: seconds.", Example(0.0039)]
    relative_gap: Annotated[float | None, "seconds / bound - 1; null where the bound is 0.", Example(0.02)]
    step_time_seconds: Annotated[float | None, "null where requests are served. Unit: seconds."]
    max_rank_time_seconds: Annotated[float | None, "null where requests are served. Unit: seconds."]


class TerminationDocument(TypedDict):
    """Why the search ended."""

    reason: Annotated[str, "OPTIMAL or FEASIBLE.", Example("OPTIMAL")]
    limit: Annotated[str | None, "Limit that was hit.", Example("time")]
    detail: Annotated[str, "In words."]


class StepMemoryDocument(TypedDict):
    """What the device memory of a rank holds over a training step."""

    device_bytes: Annotated[int, "Of the whole memory. Unit: bytes.", Example(80_000_000_000)]
    peak_bytes: Annotated[int, "The most that it holds in any phase. Unit: bytes.", Example(61_000_000_000)]
    peak_phase: Annotated[str, "The first phase with that.", Example("dense_backward")]
    persistent_bytes: Annotated[dict[str, int], "What stays through the step, line by line. Unit: bytes."]
    buffer_bytes: Annotated[
        dict[str, dict[str, int]], "What is held in one phase besides, by phase and there line by line. Unit: bytes."
    ]
    phase_bytes: Annotated[dict[str, int], "Of both together, by phase. Unit: bytes."]


class RankDocument(TypedDict):
    """One rank under a plan."""

    rank: Annotated[int, "Rank.", Example(0)]
    host: Annotated[int, "Its host.", Example(0)]
    seconds: Annotated[dict[str, float], "By phase. Unit: seconds."]
    bytes: Annotated[dict[str, int], "Taken by tables, by tier. Unit: bytes."]
    capacity_bytes: Annotated[dict[str, int], "After reservations, by tier. Unit: bytes."]
    ledger_bytes: Annotated[
        dict[str, dict[str, int]], "What takes the bytes of the tables, by tier and there line by line. Unit: bytes."
    ]
    reserved_bytes: Annotated[
        dict[str, dict[str, int]], "What tables may not use, by tier and there line by line. Unit: bytes."
    ]
    lookups: Annotated[
        float | None,
        "Of one step (or request), of the rows that it holds: all ranks are priced as the heaviest block of a table"
        " that is cut by rows, and these are its own.",
        Example(262_144),
    ]
    id_bytes: Annotated[int | None, "Of the ids that reach it in one step. Unit: bytes.", Example(2_097_152)]
    torchrec_bytes: Annotated[
        dict[str, int] | None,
        "Taken by tables as TorchRec's own planner estimates, by tier; null with other cost models. Unit: bytes.",
    ]
    step_memory: Annotated[
        StepMemoryDocument | None, "The accelerator's memory over a step; null where requests are served."
    ]


class PhaseDocument(TypedDict):
    """One phase over all ranks."""

    name: Annotated[str, "Phase.", Example("forward_compute")]
    slowest_rank: Annotated[int, "The rank that all wait for.", Example(3)]
    seconds: Annotated[float, "Of the slowest rank. Unit: seconds."]
    mean_seconds: Annotated[float, "Over all ranks. Unit: seconds."]
    hidden_seconds: Annotated[float, "Hidden under dense compute. Unit: seconds."]
    counted: Annotated[bool, "Whether the objective counts it."]
    evidence: Annotated[str, "The weakest number in it.", Example("measured")]
    lower_seconds: Annotated[
        float | None, "Lower limit of the seconds; null where the cost model knows none. Unit: seconds."
    ]
    upper_seconds: Annotated[
        float | None, "Upper limit of the seconds; null where the cost model knows none. Unit: seconds."
    ]


class StartDocument(TypedDict):
    """What a step pays once for the tables of a module that have one sharding type."""

    module: Annotated[str, "Path of the embedding module; empty where the spec gives none.", Example("model.sparse")]
    sharding_type: Annotated[str, "How the tables are cut.", Example("table_wise")]
    phase_seconds: Annotated[dict[str, float], "Starts of collectives and launches, by phase. Unit: seconds."]
    seconds: Annotated[float, "Of all phases, on every rank. Unit: seconds.", Example(0.000084)]


class TierDocument(TypedDict):
    """A tier beside the accelerator's memory, on the rank where it is busiest."""

    name: Annotated[str, "Tier.", Example("ddr")]
    busiest_rank: Annotated[int, "The rank that keeps it busy for longest.", Example(3)]
    read_bytes: Annotated[int, "In one step. Unit: bytes."]
    written_bytes: Annotated[int, "In one step. Unit: bytes."]
    operations: Annotated[int, "Of block storage, in one step."]
    busy_seconds: Annotated[float, "In one step. Unit: seconds."]
    utilization: Annotated[float, "Busy share of a step with its dense part; at most 1 in a plan."]


class ServingDocument(TypedDict):
    """What requests ask of the cards of a host, and what the host sustains."""

    samples_per_request: Annotated[int, "Unit: samples.", Example(168)]
    num_messages: Annotated[int, "Between the host and all its cards, for one request.", Example(12)]
    busiest_rank: Annotated[int, "The card that is busy for longest.", Example(3)]
    busy_seconds: Annotated[float, "Of that card, with one request. Unit: seconds."]
    requests_per_second: Annotated[float | None, "As asked; null where no rate was.", Example(500)]
    utilization: Annotated[float | None, "Busy share of that card's time at this rate.", Example(0.4)]
    utilization_limit: Annotated[float, "Largest busy share that is allowed.", Example(0.8)]
    sustained_requests_per_second: Annotated[
        float | None, "Highest rate within the limits; null where nothing is looked up.", Example(1000)
    ]
    p99_limit_seconds: Annotated[float | None, "As asked; null without a limit. Unit: seconds.", Example(0.005)]
    p50_seconds: Annotated[
        float | None,
        "Half of all requests that come at random at this rate are answered within it; null without a rate, or if the"
        " card is busy all the time. Unit: seconds.",
        Example(0.0011),
    ]
    p99_seconds: Annotated[float | None, "99 of 100 of them are. Unit: seconds.", Example(0.0031)]


class WholeStepDocument(TypedDict):
    """A training step with its dense part: what sticks out of the phases of embeddings, dense compute and the rest."""

    seconds: Annotated[float, "Of one step. Unit: seconds.", Example(0.004)]
    samples_per_second: Annotated[float, "Of all ranks together. Unit: samples per second.", Example(16_000_000.0)]
    sparse_seconds: Annotated[float, "Phases of embeddings that dense compute does not hide. Unit: seconds."]
    hidden_sparse_seconds: Annotated[float, "Of the same phases, hidden under dense compute. Unit: seconds."]
    dense_forward_seconds: Annotated[float, "Unit: seconds."]
    dense_backward_seconds: Annotated[float, "Unit: seconds."]
    dense_all_reduce_seconds: Annotated[float, "All-reduce of dense gradients, hidden or not. Unit: seconds."]
    hidden_all_reduce_seconds: Annotated[float, "Of the all-reduce, under the dense backward pass. Unit: seconds."]
    overhead_seconds: Annotated[float, "step_overhead_seconds of the hardware; 0 where not known. Unit: seconds."]
    stash_wait_seconds: Annotated[float, "Dense compute waits for copies of stashed weights. Unit: seconds."]
    evidence: Annotated[str, "The weakest number in it.", Example("measured")]


class StashDocument(TypedDict):
    """Weights that leave the device between the lookups of a step and their backward pass."""

    num_tables: Annotated[int, "Tables that are stashed, each with all its shards.", Example(12)]
    busiest_rank: Annotated[int, "The rank with the most stashed bytes.", Example(3)]
    stashed_bytes: Annotated[int, "Of that rank. Unit: bytes.", Example(9_600_000_000)]
    all_ranks_bytes: Annotated[int, "Of all ranks together. Unit: bytes."]
    host_bytes: Annotated[int, "Pinned host memory of that rank, at most. Unit: bytes."]
    to_host_seconds: Annotated[float, "That rank's copies to the host. Unit: seconds."]
    to_device_seconds: Annotated[float, "That rank's copies back. Unit: seconds."]
    forward_wait_seconds: Annotated[float, "Longest wait of dense compute for copies to the host. Unit: seconds."]
    backward_wait_seconds: Annotated[float, "Longest wait of the backward pass for copies back. Unit: seconds."]


class SharesDocument(TypedDict):
    """Parts of the seconds of all ranks; they add up to 1."""

    learned: Annotated[float, "Learned from measurements of shards and collectives.", Example(0.8)]
    measured: Annotated[float, "Analytic, from measured rates of the hardware alone.", Example(0.15)]
    analytic: Annotated[float, "Analytic, from at least one rate that was not measured.", Example(0.05)]


class FallbackDocument(TypedDict):
    """Shards outside the range that the model was trained on, priced by its analytic model."""

    table: Annotated[str, "Name of the table.", Example("cat_0")]
    num_shards: Annotated[int, "Number of its shards.", Example(8)]
    reason: Annotated[str, "What is outside, and the range.", Example("shard_columns 1024; measured: 4 to 256")]


class AnalyticPhaseDocument(TypedDict):
    """A phase with a collective that the model does not price, and that its analytic model priced."""

    phase: Annotated[str, "Name of the phase.", Example("forward_comm")]
    reason: Annotated[str, "Which collective, and why.", Example("all_to_all over several hosts was not measured")]


class PredictionDocument(TypedDict):
    """How well the cost model knows the seconds of a plan."""

    coverage: Annotated[
        float, "Probability that each rank's time in each phase lies within its own interval.", Example(0.9)
    ]
    lower_seconds: Annotated[float, "The objective with all of them at their lower limit. Unit: seconds."]
    upper_seconds: Annotated[float, "The objective with all of them at their upper limit. Unit: seconds."]
    shares: SharesDocument
    num_fallbacks: Annotated[int, "Tables and reasons outside the measured range.", Example(0)]
    fallbacks: Annotated[list[FallbackDocument], "The first 50 of them."]
    analytic_phases: Annotated[
        list[AnalyticPhaseDocument], "In the order of a step; a phase stands there once for each reason."
    ]


class SurrogateDocument(TypedDict):
    """The additive model that a plan was searched with, where the cost model prices whole ranks only."""

    seconds: Annotated[float, "The plan's objective under it. Unit: seconds."]
    lower_bound_seconds: Annotated[float, "Of all plans, under it. Unit: seconds."]
    relative_gap: Annotated[float | None, "seconds / bound - 1; null where the bound is 0."]
    round: Annotated[int, "The search that found the plan; the first one has the model's own additive prices."]
    num_rounds: Annotated[int, "Searches at most."]
    moved_shards: Annotated[int, "That went to another rank after the search, as the model of whole ranks advised."]


class GapPartsDocument(TypedDict):
    """What lies between a plan and its bound. The first three add up to objective.seconds - lower_bound_seconds."""

    balance_seconds: Annotated[
        float, "The most that other ranks for the same shards can gain. Unit: seconds.", Example(0.00004)
    ]
    packing_seconds: Annotated[
        float, "Lost because the shards do not divide evenly among ranks. Unit: seconds.", Example(0.00005)
    ]
    choice_seconds: Annotated[
        float,
        "What the shards cost, divided evenly, above the mix of shardings that the bound assumes. Unit: seconds.",
        Example(0.00001),
    ]
    refuted_seconds: Annotated[float, "By which branching raised the bound. Unit: seconds.", Example(0.0002)]
    is_bound_final: Annotated[bool, "Whether a longer solve cannot raise the bound.", Example(False)]


class TradePointDocument(TypedDict):
    """What one search for an objective found: within its limits, no plan has a weighted sum below least_sum."""

    weights: Annotated[dict[str, float], "Weight of each objective in the sum that was minimised, per unit of it."]
    limits: Annotated[dict[str, float], "Largest values that were allowed, of objectives without a weight."]
    values: Annotated[dict[str, float] | None, "Of the plan with the least sum that was found; null without one."]
    least_sum: Annotated[float, "No plan within the limits has less."]


class OrderedObjectiveDocument(TypedDict):
    """One of the ordered objectives: its value in the plan, and what no plan within its limits goes below."""

    name: Annotated[str, "Name of the objective.", Example("fullest_rank")]
    unit: Annotated[str, "Unit of all its values: seconds, bytes or share.", Example("share")]
    value: Annotated[float, "In the plan.", Example(0.42)]
    value_before: Annotated[float, "In the plan that the objectives before it led to.", Example(0.61)]
    value_at_turn: Annotated[float, "After its turn; objectives that follow may worsen it.", Example(0.42)]
    lower_bound: Annotated[float, "No plan that keeps its limits has less.", Example(0.40)]
    limits: Annotated[dict[str, float], "Largest values of the objectives before it, by name."]
    points: Annotated[list[TradePointDocument], "The searches of its turn: other plans, and what they prove."]


class RankBytesDocument(TypedDict):
    """A rank and its bytes."""

    rank: Annotated[int, "Rank."]
    bytes: Annotated[int, "Unit: bytes."]


# Not a class, because ``from`` is a keyword of Python.
RankPairDocument = TypedDict(
    "RankPairDocument",
    {
        "from": Annotated[int, "The rank that sends."],
        "to": Annotated[int, "The rank that receives."],
        "bytes": Annotated[int, "Unit: bytes."],
    },
)
RankPairDocument.__doc__ = "Bytes that one rank sends another."


class MovementDocument(TypedDict):
    """What moves from the previous plan: weights and optimizer state."""

    previous_plan_digest: Annotated[str | None, "Digest of the previous plan; null where it states none."]
    moved_bytes: Annotated[int, "On other ranks before, or further copies. Unit: bytes."]
    kept_bytes: Annotated[int, "Where they were. Unit: bytes."]
    new_bytes: Annotated[int, "Of tables that the previous plan lacks or has in another shape. Unit: bytes."]
    most_sent: Annotated[RankBytesDocument, "The rank that sends most."]
    most_received: Annotated[RankBytesDocument, "The rank that receives most."]
    num_rank_pairs: Annotated[int, "Pairs of ranks of which one sends to the other."]
    by_rank_pair: Annotated[list[RankPairDocument], "The 1,000 pairs with the most bytes, by sender."]
    seconds: Annotated[float | None, "Of the busiest rank, all at once; null where no link is known. Unit: seconds."]
    link_evidence: Annotated[str | None, "The weakest link speed behind the seconds."]
    previous_objective_seconds: Annotated[float | None, "Of the previous plan now; null where it is no longer legal."]
    previous_issue: Annotated[str | None, "Why the previous plan is no longer legal."]
    saved_seconds_per_step: Annotated[float | None, "Previous objective less that of this plan. Unit: seconds."]
    saved_lower_seconds: Annotated[
        float | None, "Lower limit of the saved seconds; below 0 the move may cost time. null where not known."
    ]
    saved_upper_seconds: Annotated[float | None, "Upper limit of the saved seconds; null where not known."]
    break_even_steps: Annotated[int | None, "Steps until the move has paid; null where nothing is saved. Unit: steps."]
    charged_seconds_per_step: Annotated[float, "What the search added to the objective of a step. Unit: seconds."]
    remaining_steps: Annotated[int, "As in the spec: steps over which a move must pay. Unit: steps."]
    max_moved_bytes: Annotated[float | None, "As in the spec. Unit: bytes."]


class EvidenceDocument(TypedDict):
    """One number or default that a plan rests on."""

    value: Annotated[str, "What was assumed.", Example("2.68e+12 bytes_per_second")]
    evidence: Annotated[str, "measured, given, datasheet, estimated, default or note.", Example("measured")]
    source: Annotated[str, "Who says so."]


class ProvenanceDocument(TypedDict):
    """What a plan was made with."""

    cost_model: Annotated[str, "Model and version.", Example("roofline@2")]
    hardware_profile: Annotated[str, "Profile that it was planned for.", Example("dgx-h100-80g")]
    partitioner: Annotated[str, "Who found the plan.", Example("cp_sat")]
    evidence: Annotated[dict[str, EvidenceDocument], "By what it is about."]
    seed: Annotated[int, "Of the search."]
    solver_seconds: Annotated[float, "Of the whole search. Unit: seconds."]
    found_seconds: Annotated[float | None, "From its beginning until the plan was found. Unit: seconds."]
    late_gain_seconds: Annotated[
        float | None,
        "By which the second half of the solve improved the plan: 0 if by less than 0.1%, null if the first half found"
        " no plan. Unit: seconds.",
    ]
    versions: Annotated[dict[str, str], "Of shardplan and of the libraries that it searched with."]


class StepLoadsDocument(TypedDict):
    """What a plan asks of all ranks together, of tiers and cards, and how well that is known."""

    phases: Annotated[list[PhaseDocument], "Predicted seconds of every phase."]
    starts: Annotated[
        list[StartDocument],
        "What every sharding type in use starts, in the seconds of all ranks; empty without starts.",
    ]
    tiers: Annotated[list[TierDocument], "Predicted traffic of host memory, storage-class memory and block storage."]
    serving: Annotated[ServingDocument | None, "What requests ask of the cards; null of a training step."]
    prediction: Annotated[PredictionDocument | None, "How well the cost model knows the seconds; null of torchrec."]
    whole_step: Annotated[
        WholeStepDocument | None, "A training step with its dense part; null if the spec does not time that."
    ]
    stash: Annotated[StashDocument | None, "What is stashed; null where the spec stashes nothing."]
    growth: NotRequired[
        Annotated[list[TableGrowthDocument], "Hash tables that grow with their ids; only of plans that have some."]
    ]
    replica_sync: NotRequired[
        Annotated[ReplicaSyncDocument, "What keeping sharding groups alike takes; only of plans with such groups."]
    ]
    kv_cache: NotRequired[
        Annotated[KvCacheDocument, "What keys and values of users take and save; only of plans beside such a cache."]
    ]
    index_dedup: NotRequired[
        Annotated[IndexDedupDocument, "What leaving out repeated ids saves and takes; only where the spec allows it."]
    ]


class LoadsDocument(StepLoadsDocument):
    """What a plan asks of ranks, tiers, hosts and cards, and how well that is known."""

    ranks: Annotated[list[RankDocument], "Predicted load of every rank."]
    checkpoint: Annotated[CheckpointDocument | None, "What checkpoints take; null where the spec has none."]


class HeadDocument(TypedDict):
    """What a plan and the slice of a rank begin with."""

    schema_version: Annotated[Literal[1], "Version of this document.", Example(1)]
    plan_digest: Annotated[str, "Digest of what determines training."]
    spec_digest: Annotated[str, "Digest of the spec."]
    name: Annotated[str, "Name of the model.", Example("dlrm-dcnv2")]
    world_size: Annotated[int, "Unit: ranks.", Example(8)]
    ranks_per_host: Annotated[int, "Unit: ranks.", Example(8)]
    pod_size: NotRequired[
        Annotated[int, "Ranks of a pod: groups that rows are cut over; absent where groups are hosts. Unit: ranks."]
    ]
    use_index_dedup: NotRequired[
        Annotated[
            Literal[True],
            "Repeated ids of sequences are left out before they are exchanged; absent where they are not.",
        ]
    ]
    replica_groups: NotRequired[
        Annotated[ReplicaGroupsDocument, "How the ranks of the job are divided into groups; only of such plans."]
    ]
    kv_cache_bytes: NotRequired[
        Annotated[
            int, "Of every rank, left to keys and values of users; only of plans beside such a cache. Unit: bytes."
        ]
    ]
    objective: Annotated[ObjectiveDocument, "Predicted objective, bound and gap. Unit: seconds."]
    termination: Annotated[TerminationDocument, "Why the search ended."]


class SearchDocument(TypedDict):
    """How a plan was found."""

    surrogate: Annotated[SurrogateDocument | None, "The additive model of the search; null without one."]
    gap_parts: Annotated[
        GapPartsDocument | None,
        "What the gap consists of; null of plans that are proven optimal, that pay for moves or that were not the"
        " result of a search, and where the bound is another model's.",
    ]
    objectives: Annotated[
        list[OrderedObjectiveDocument] | None, "The ordered objectives in their order; null if the spec lists none."
    ]
    movement: Annotated[MovementDocument | None, "What moves from the previous plan; null without one."]
    provenance: Annotated[ProvenanceDocument, "Cost model, hardware, evidence, seed and versions."]


class PlanDocument(HeadDocument, LoadsDocument, SearchDocument):
    """A sharding plan. Geometry is what counts; the rest is read by people and launchers."""

    tables: Annotated[list[TableDocument], "Every table of the model."]


class SliceDocument(HeadDocument):
    """What one rank needs of a plan; it has no digest of its own."""

    rank: Annotated[int, "The rank, from 0.", Example(0)]
    tables: Annotated[list[TableDocument], "The tables that have shards on the rank, with these shards alone."]
    ranks: Annotated[list[RankDocument], "Predicted load of the rank."]


class ScoreDocument(TypedDict):
    """What a plan costs under the cost model of the spec."""

    objective: Annotated[str, "Name of the objective.", Example("step_time")]
    objective_seconds: Annotated[float, "Unit: seconds."]
    step_time_seconds: Annotated[float | None, "null where requests are served. Unit: seconds."]
    max_rank_time_seconds: Annotated[float | None, "null where requests are served. Unit: seconds."]
    cost_model: Annotated[str, "Model and version.", Example("roofline@2")]
    ranks: list[RankDocument]
    phases: list[PhaseDocument]
    starts: NotRequired[Annotated[list[StartDocument], "What every sharding type in use starts."]]
    tiers: list[TierDocument]
    checkpoint: NotRequired[
        Annotated[CheckpointDocument | None, "What checkpoints take; null where the spec says nothing of them."]
    ]
    serving: Annotated[ServingDocument | None, "Where requests are served; null of a training step."]
    prediction: NotRequired[
        Annotated[PredictionDocument | None, "How well the cost model knows these seconds; null of torchrec."]
    ]
    whole_step: NotRequired[
        Annotated[WholeStepDocument | None, "A training step with its dense part; null if the spec does not time that."]
    ]
    stash: NotRequired[Annotated[StashDocument | None, "What is stashed; null where the spec stashes nothing."]]
    growth: NotRequired[
        Annotated[list[TableGrowthDocument], "Hash tables that grow with their ids; only of plans that have some."]
    ]
    replica_sync: NotRequired[
        Annotated[ReplicaSyncDocument, "What keeping sharding groups alike takes; only where there are such groups."]
    ]
    kv_cache: NotRequired[
        Annotated[KvCacheDocument, "What keys and values of users take and save; only beside such a cache."]
    ]
    index_dedup: NotRequired[
        Annotated[IndexDedupDocument, "What leaving out repeated ids saves and takes; only where the spec allows it."]
    ]
