"""What a launcher reads of a plan. Generated from planner/output/documents: edit a module there, then run

``make generated``.
"""

from typing import Literal, NotRequired, TypedDict

#: Version of the plan document.
SCHEMA_VERSION = 1
#: Keys of a plan that determine training: the digest covers these, so timing never changes it.
DIGEST_KEYS = ("schema_version", "spec_digest", "world_size", "ranks_per_host", "tables")
#: Keys that it covers, too, in plans that have them.
OPTIONAL_DIGEST_KEYS = ("pod_size", "use_index_dedup", "replica_groups", "kv_cache_bytes")
#: Keys of a shard that follow from the others and are outside the digest.
DERIVED_SHARD_KEYS = ("bytes",)


class ShardDocument(TypedDict):
    """A rectangle of a table on one rank, in one memory tier."""

    #: Rank that holds it.
    rank: int
    #: First row. Unit: rows.
    row_offset: int
    #: Number of rows. Unit: rows.
    num_rows: int
    #: First column. Unit: columns.
    column_offset: int
    #: Number of columns. Unit: columns.
    num_columns: int
    #: Memory tier.
    tier: str
    #: In all tiers together; outside the digest. Unit: bytes.
    bytes: NotRequired[int]


class TableDocument(TypedDict):
    """One table's scheme, kernel and shards, in the order of the runtime."""

    #: Name of the table.
    name: str
    #: Path of its embedding module.
    module_path: NotRequired[str]
    #: Type of the weights.
    data_type: NotRequired[str]
    #: How bags become rows.
    pooling: NotRequired[str]
    #: Mode of its hash table, if it has one.
    hash_table_mode: NotRequired[str]
    #: Scheme.
    sharding_type: str
    #: Kernel.
    compute_kernel: str
    #: Cached share of the rows.
    cache_load_factor: NotRequired[float | None]
    #: Device memory that FBGEMM leaves free when it allocates the cache. Tables with different values never share a
    #: cache; a value below 1 leaves nothing free, and only separates tables. Unit: bytes.
    cache_reserved_bytes: NotRequired[float]
    #: Weights leave the device between the lookups of a step and their backward pass.
    stash_weights: NotRequired[bool]
    #: The shards, at most two per rank of the largest cluster. A data_parallel table lists one full copy per rank.
    shards: list[ShardDocument]


class ReplicaGroupsDocument(TypedDict):
    """Groups of ranks, each of which holds all tables under this plan; all of it is in the digest."""

    #: Ranks of the job; those of the plan are one group's. Unit: ranks.
    world_size: int
    #: Of the job. Unit: ranks.
    ranks_per_host: int
    #: Ranks of a group. Unit: ranks.
    sharding_group_size: int
    #: Groups, and copies of the tables.
    num_groups: int
    #: Ranks of a group in each pod that it uses, or else on each host. Unit: ranks.
    node_group_size: int
    #: Whether the groups are contiguous ranks; else a group takes every n-th rank, of n groups.
    use_inter_host_allreduce: bool
    #: Steps from one average to the next. Unit: steps.
    sync_interval_steps: int
    #: Whether optimizer state is averaged with the weights.
    include_optimizer_state: bool


class LongestPhaseDocument(TypedDict):
    """The phase that the objective has most of."""

    #: Phase.
    name: str
    #: Of the objective's phases.
    share: float
    #: The rank that all wait for.
    slowest_rank: int


class PriceErrorsDocument(TypedDict):
    """How well the prices of a plan are known."""

    #: Of the seconds of all ranks: learned, or from measured numbers alone.
    measured_share: float
    #: Of the objective, by which the plan may be faster.
    lower_fraction: float
    #: Of the objective, by which the plan may be slower.
    upper_fraction: float


class PlanVerdictDocument(TypedDict):
    """How good a plan is, in words and figures."""

    #: The verdict in words.
    text: str
    #: Fraction of the bound by which the plan may be slower; null if the bound says nothing.
    most_above_best: NotRequired[float | None]
    #: null of a plan without counted seconds.
    longest_phase: NotRequired[LongestPhaseDocument | None]
    #: null if the cost model says nothing of its errors.
    prices: NotRequired[PriceErrorsDocument | None]


class PlanDocument(TypedDict):
    """A sharding plan. Geometry is what counts; the rest is read by people and launchers."""

    #: Version of this document.
    schema_version: Literal[1]
    #: Digest of what determines training.
    plan_digest: str
    #: Digest of the spec.
    spec_digest: str
    #: Unit: ranks.
    world_size: int
    #: Unit: ranks.
    ranks_per_host: int
    #: Ranks of a pod: groups that rows are cut over; absent where groups are hosts. Unit: ranks.
    pod_size: NotRequired[int]
    #: Repeated ids of sequences are left out before they are exchanged; absent where they are not.
    use_index_dedup: NotRequired[Literal[True]]
    #: How the ranks of the job are divided into groups; only of such plans.
    replica_groups: NotRequired[ReplicaGroupsDocument]
    #: Of every rank, left to keys and values of users; only of plans next to such a cache. Unit: bytes.
    kv_cache_bytes: NotRequired[int]
    #: How good the plan is; null of plans of earlier versions.
    verdict: NotRequired[PlanVerdictDocument | None]
    #: Every table of the model.
    tables: list[TableDocument]
