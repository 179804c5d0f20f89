"""The plan document: every field, its type, what it says, and an example. All other descriptions come from this one.

The builder returns these types, texts and exporters read them, :mod:`api.schemas.described` makes the models of the
service and their OpenAPI components of them, and the types of the launcher's client are generated from them.
:mod:`planner.output.documents.compact_plan` has what the compact form has in the place of long lists.

A text in ``Annotated`` is the description of a field. A nullable field may be missing in documents of earlier versions,
which did not have it: readers use ``get``. What is in a table, but for ``bytes`` of a shard, is in the digest of the
plan: a new field there gives equal plans another digest.
"""

from typing import Annotated, Literal, NotRequired, TypedDict

from planner.output.documents.checkpoint import CheckpointDocument
from planner.output.documents.field_example import Example
from planner.output.documents.growth import TableGrowthDocument
from planner.output.documents.index_dedup import IndexDedupDocument
from planner.output.documents.kv_cache import KvCacheDocument
from planner.output.documents.replica_groups import ReplicaGroupsDocument, ReplicaSyncDocument
from planner.output.documents.search import (
    GapPartsDocument,
    MovementDocument,
    OrderedObjectiveDocument,
    PredictionDocument,
    ProvenanceDocument,
    SurrogateDocument,
)
from planner.output.documents.step import (
    PhaseDocument,
    RankDocument,
    ServingDocument,
    StartDocument,
    StashDocument,
    TierDocument,
    WholeStepDocument,
)
from planner.output.documents.verdict import BaselineDocument, PlanVerdictDocument


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


class PlanTerminationDocument(TypedDict):
    """Why the search ended."""

    reason: Annotated[str, "OPTIMAL or FEASIBLE.", Example("OPTIMAL")]
    limit: Annotated[str | None, "Limit that was hit.", Example("time")]
    detail: Annotated[str, "In words."]


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
        Annotated[KvCacheDocument, "What keys and values of users take and save; only of plans next to such a cache."]
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
            int, "Of every rank, left to keys and values of users; only of plans next to such a cache. Unit: bytes."
        ]
    ]
    objective: Annotated[ObjectiveDocument, "Predicted objective, bound and gap. Unit: seconds."]
    termination: Annotated[PlanTerminationDocument, "Why the search ended."]


class SearchDocument(TypedDict):
    """How a plan was found, and how good it is."""

    verdict: Annotated[PlanVerdictDocument | None, "How good the plan is; null of plans of earlier versions."]
    baselines: Annotated[
        list[BaselineDocument] | None,
        "What the plan is compared with; null of plans that were found on the way to another, or not searched for.",
    ]
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
        Annotated[KvCacheDocument, "What keys and values of users take and save; only next to such a cache."]
    ]
    index_dedup: NotRequired[
        Annotated[IndexDedupDocument, "What leaving out repeated ids saves and takes; only where the spec allows it."]
    ]
