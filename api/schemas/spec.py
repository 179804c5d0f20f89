"""The spec: what a user asks a plan for. Field names are the contract of the service."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue, field_validator
from pydantic_core import PydanticCustomError

from api.schemas.base import Name, StrictModel, Title
from api.schemas.checkpoint import CheckpointSpec
from api.schemas.dense import DenseSpec
from api.schemas.kv_cache import KvCacheSpec
from api.schemas.objectives import OrderedObjectiveSpec
from api.schemas.referenced_plan import CheckpointPlanSpec, ReferencedPlanSpec, WarmStartSpec
from api.schemas.stash import StashSpec
from api.schemas.table import Fraction, TableSpec
from cost_models.hardware.profile_fields import FIELDS
from planner.domain.plan.movement import DEFAULT_MIN_RELATIVE_GAIN, DEFAULT_REMAINING_STEPS, MAX_REMAINING_STEPS
from planner.domain.problem.cluster import MAX_RANKS, MAX_RELATIVE_SPEED, MIN_RELATIVE_SPEED
from planner.domain.problem.replica_groups import MIN_GROUP_SIZE
from planner.domain.problem.serving import DEFAULT_UTILIZATION_LIMIT

MAX_TABLES = 20_000
MAX_CUTOFF_SECONDS = 1e6
MAX_GROUPS = 20_000

CommTypeName = Literal["fp32", "fp16", "bf16", "int8"]
Group = Annotated[list[Name], Field(min_length=2, max_length=MAX_TABLES, fail_fast=True)]
RankBytes = Annotated[
    list[Annotated[float, Field(ge=0, le=1e18)]], Field(min_length=1, max_length=MAX_RANKS, fail_fast=True)
]
RankSpeeds = Annotated[
    list[Annotated[float, Field(ge=MIN_RELATIVE_SPEED, le=MAX_RELATIVE_SPEED)]],
    Field(min_length=1, max_length=MAX_RANKS, fail_fast=True),
]


GroupSize = Annotated[int, Field(ge=MIN_GROUP_SIZE, le=MAX_RANKS)]
GroupSizes = Annotated[list[GroupSize], Field(min_length=1, max_length=MAX_RANKS, fail_fast=True)]


class ModelSpec(StrictModel):
    """The model: its tables and what surrounds them."""

    batch_size_per_rank: Annotated[int, Field(ge=1, le=2**24)] | None = Field(
        default=None,
        description="Samples of one rank in one step; required but for request_latency, which has "
        "serving.samples_per_request instead. Unit: samples.",
        examples=[8192],
    )
    tables: Annotated[list[TableSpec], Field(min_length=1, max_length=MAX_TABLES)] = Field(
        description="The embedding tables."
    )
    forward_comm_dtype: CommTypeName | None = Field(
        default=None, description="Type on the wire forward; null leaves it to the cost model.", examples=["fp32"]
    )
    backward_comm_dtype: CommTypeName | None = Field(
        default=None, description="Type on the wire backward; null leaves it to the cost model.", examples=["fp32"]
    )
    output_dtype: CommTypeName | None = Field(
        default=None, description="Type of pooled outputs; null leaves it to the cost model.", examples=["fp32"]
    )
    dense: DenseSpec = Field(default_factory=DenseSpec, description="The dense part of the model.")
    stash: StashSpec | None = Field(
        default=None,
        description="Weights that leave the accelerators while the dense part runs; null: none do.",
        examples=[None],
    )
    use_index_dedup: Literal["off", "on", "auto"] = Field(
        default="off",
        description="Whether repeated ids of sequences are left out before they are exchanged, in all modules of the"
        " job; auto leaves that to the planner.",
        examples=["auto"],
    )
    pipeline: Literal["none", "train_sparse_dist", "train_prefetch_sparse_dist"] = Field(
        default="train_sparse_dist",
        description="Training pipeline; it decides how many batches are held at once.",
        examples=["train_sparse_dist"],
    )


def _document_overrides(schema: dict[str, Any]) -> None:
    """List the numbers that may be overridden in the published schema."""
    properties = schema.setdefault("properties", {})
    for name, field in FIELDS.items():
        description = f"{field.description[0].upper()}{field.description[1:]}. Unit: {field.unit}."
        properties[name] = {"type": "number", "minimum": 0, "description": description}
    schema["additionalProperties"] = False


class HardwareOverrides(StrictModel):
    """Numbers of the profile that are replaced; a custom profile takes them all from here."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_document_overrides)
    __pydantic_extra__: dict[str, Annotated[float, Field(ge=0, le=1e18)]]

    hbm_bytes_by_rank: RankBytes | None = Field(
        default=None, description="HBM of each rank, where ranks differ. Unit: bytes.", examples=[None]
    )
    relative_speed_by_rank: RankSpeeds | None = Field(
        default=None,
        description="Speed of each rank's lookups and updates, where ranks differ; 1 is the profile's, 0.5 takes twice "
        "as long. Communication is not changed.",
        examples=[None],
    )


class ReplicaGroupsSpec(StrictModel):
    """Sharding groups (2D parallelism): tables are sharded inside each group, and all groups have copies of them."""

    sharding_group_size: GroupSize | Literal["auto"] | GroupSizes = Field(
        description="Ranks of a sharding group; a list of sizes to choose from, or auto for all sizes that hosts can be"
        " divided into. Unit: ranks.",
        examples=[16],
    )
    sync_interval_steps: Annotated[int, Field(ge=1, le=10**9)] = Field(
        default=1,
        description="Steps from one average of the weights over all groups to the next. Unit: steps.",
        examples=[1],
    )
    include_optimizer_state: bool = Field(
        default=True, description="Whether optimizer state is averaged with the weights.", examples=[True]
    )
    use_inter_host_allreduce: bool = Field(
        default=False,
        description="Whether groups are contiguous ranks, so that averages cross hosts; else a group takes every n-th"
        " rank, and averages stay on hosts where they can.",
        examples=[False],
    )

    @property
    def has_choice(self) -> bool:
        """Whether the size of groups may be left to the search."""
        size = self.sharding_group_size
        return size == "auto" or (not isinstance(size, int) and len(set(size)) > 1)

    @field_validator("sharding_group_size", mode="before")
    @classmethod
    def _is_a_size(cls, value: object) -> object:
        sizes = value if isinstance(value, list) and value else [value]
        if value != "auto" and not all(type(one) is int and MIN_GROUP_SIZE <= one <= MAX_RANKS for one in sizes):
            message = f'expected {MIN_GROUP_SIZE} to {MAX_RANKS} ranks, a list of such sizes, or "auto"'
            raise PydanticCustomError("group_size", "{message}", {"message": message})
        return value


class HardwareSpec(StrictModel):
    """The cluster."""

    profile: Name = Field(description="Id of a hardware profile, or custom.", examples=["dgx-h100-80g"])
    num_hosts: Annotated[int, Field(ge=1, le=MAX_RANKS)] = Field(
        default=1, description="Hosts of the cluster. Unit: hosts.", examples=[1]
    )
    ranks_per_host: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(
        default=None,
        description="Ranks used on each host, as many on all; null takes all of the profile. Hosts without"
        " accelerators may be shared by more: each rank then has its share of the profile's numbers. Unit: ranks.",
        examples=[8],
    )
    pod_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(
        default=None,
        description="Ranks of a pod: hosts that share one NVLink domain. table_row_wise, table_column_wise and"
        " grid_shard then go over a pod where they went over a host. null: over a host. Unit: ranks.",
        examples=[None],
    )
    overrides: HardwareOverrides = Field(
        default_factory=HardwareOverrides,
        description="Numbers of the profile that are replaced.",
        examples=[{"hbm_bytes": 80_000_000_000}],
    )
    collective_laws: dict[str, JsonValue] | None = Field(
        default=None,
        description="Laws of collectives as shardplan fit --laws writes them, in place of the profile's of the same"
        " operations; null takes the profile's.",
        examples=[None],
    )

    replica_groups: ReplicaGroupsSpec | None = Field(
        default=None,
        description="How the ranks are divided into sharding groups, each with a copy of all tables; null is one group"
        " of all ranks.",
        examples=[None],
    )

    @field_validator("ranks_per_host", mode="before")
    @classmethod
    def _is_one_number(cls, value: object) -> object:
        if isinstance(value, list) and value and all(type(one) is int for one in value):
            counts = ", ".join(str(one) for one in value[:8])
            message = f"hosts of {counts} ranks: all hosts of a cluster have as many, so give one number"
            raise PydanticCustomError("uneven_hosts", "{message}", {"message": message})
        return value


class JointConstraintsSpec(StrictModel):
    """Constraints on several tables together, and on memory."""

    same_rank: Annotated[list[Group], Field(max_length=MAX_GROUPS)] = Field(
        default_factory=list, description="Groups of tables that share one rank.", examples=[[]]
    )
    apart: Annotated[list[Group], Field(max_length=MAX_GROUPS)] = Field(
        default_factory=list, description="Groups of tables of which no two share a rank.", examples=[[]]
    )
    reserved_hbm_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.15, description="Share of every rank's memory that tables may not use.", examples=[0.15]
    )
    reserved_ddr_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.05,
        description="Share of the host memory of every rank that tables may not use where ranks have accelerators: the "
        "system and the loading of data need it.",
        examples=[0.05],
    )
    reserved_collective_bytes: Annotated[float, Field(ge=0, le=2.0**60)] | None = Field(
        default=None,
        description="Memory of every rank that communication buffers take, besides the margin: NCCL's take about 4e8 "
        "bytes. null leaves them to the margin. Unit: bytes.",
        examples=[4e8],
    )


class SolverSpec(StrictModel):
    """Who searches, and when to stop."""

    partitioner: Name = Field(default="portfolio", description="Name of the partitioner.", examples=["portfolio"])
    time_limit_seconds: Annotated[float, Field(ge=0.001, le=3600)] = Field(
        default=10.0, description="Limit of the search, a millisecond at least. Unit: seconds.", examples=[10]
    )
    relative_gap: Fraction = Field(
        default=0.005, description="Stop when the plan is proven this close to the best.", examples=[0.005]
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(default=0, description="Random seed.", examples=[0])
    reproducible: bool = Field(
        default=True, description="Count effort in solver work, so that equal specs give equal plans.", examples=[True]
    )
    work_limit_seconds: Annotated[float, Field(gt=0, le=3600)] | None = Field(
        default=None,
        description=(
            "Work of a reproducible search, about twice the seconds that a quiet machine needs for it; null is"
            " time_limit_seconds, which a busy machine may reach first. Unit: seconds."
        ),
        examples=[10],
    )
    warm_start: WarmStartSpec | None = Field(
        default=None,
        description="A plan at which the search begins, of this problem or of one much like it; null: at none.",
        examples=[None],
    )
    cutoff_seconds: Annotated[float, Field(gt=0, le=MAX_CUTOFF_SECONDS)] | None = Field(
        default=None,
        description="Value of the objective: the solve ends with the plan that it has once its lower bound proves that"
        " no plan is below. null: none. Unit: seconds.",
        examples=[None],
    )


class ServingSpec(StrictModel):
    """What a host that serves is asked for; its ranks are cards that work on one request together."""

    samples_per_request: Annotated[int, Field(ge=1, le=2**24)] = Field(
        description="Samples of one request, over all cards of the host. Unit: samples.", examples=[168]
    )
    requests_per_second: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        default=None,
        description="Requests of one host; a plan must sustain them. null: any rate, and the plan states the highest. "
        "Unit: requests per second.",
        examples=[500],
    )
    kv_cache: KvCacheSpec | None = Field(
        default=None, description="Keys and values of users next to the tables; null: none are kept."
    )
    utilization_limit: Annotated[float, Field(gt=0, le=1)] = Field(
        default=DEFAULT_UTILIZATION_LIMIT,
        description="Share of the time for which any card may be busy.",
        examples=[DEFAULT_UTILIZATION_LIMIT],
    )
    p99_seconds: Annotated[float, Field(gt=0, le=3600)] | None = Field(
        default=None,
        description="99 of 100 requests must be answered within it, if they come at random (Poisson) at"
        " requests_per_second, which it needs; waiting included. null: no such limit. Unit: seconds.",
        examples=[0.005],
    )


class PreviousPlanSpec(ReferencedPlanSpec):
    """A plan that runs already, and what moving away from it may cost; give the plan or its digest."""

    remaining_steps: Annotated[int, Field(ge=1, le=MAX_REMAINING_STEPS)] = Field(
        default=DEFAULT_REMAINING_STEPS,
        description="Steps over which a move must pay for itself. Unit: steps.",
        examples=[DEFAULT_REMAINING_STEPS],
    )
    max_moved_bytes: Annotated[float, Field(ge=0, le=2.0**60)] | None = Field(
        default=None,
        description="Most bytes of weights and optimizer state that may move; null is no limit. Unit: bytes.",
        examples=[10_000_000_000],
    )
    min_relative_gain: Fraction = Field(
        default=DEFAULT_MIN_RELATIVE_GAIN,
        description="Share of the previous plan's objective that a plan must save before anything moves.",
        examples=[DEFAULT_MIN_RELATIVE_GAIN],
    )


class SpecDocument(StrictModel):
    """The body of ``POST /v1/solves``, and of a file given to the command line."""

    listed: ClassVar[str] = "in docs/spec.md, and under /docs of a server"

    schema_version: Literal[1] = Field(default=1, description="Version of this document.", examples=[1])
    name: Title = Field(default="unnamed", description="Name of the model, for people.", examples=["dlrm-dcnv2"])
    model: ModelSpec = Field(description="The model.")
    hardware: HardwareSpec = Field(description="The cluster.")
    constraints: JointConstraintsSpec = Field(
        default_factory=JointConstraintsSpec, description="Joint constraints and the memory reservation."
    )
    runtime: Literal[
        "torchrec", "generic", "torcheasyrec", "dynamicemb", "hugectr", "distributed_embeddings", "sparsecore"
    ] = Field(default="torchrec", description="What executes the plan; it decides which geometry is legal.")
    objective: Literal["step_time", "max_rank_time", "request_latency"] = Field(
        default="step_time",
        description="step_time: sum over phases of the slowest rank; max_rank_time: slowest rank's sum; "
        "request_latency: slowest card's time for one request.",
        examples=["step_time"],
    )
    objectives: Annotated[list[OrderedObjectiveSpec], Field(min_length=1, max_length=4)] | None = Field(
        default=None,
        description="Objectives in their order, step_time among them: each is made small while those before it become "
        "worse by no more than it tolerates. null is the objective alone.",
        examples=[[{"name": "step_time"}, {"name": "fullest_rank", "tolerance": 0.02}]],
    )
    cost_model: Name = Field(default="roofline", description="Name of the cost model.", examples=["roofline"])
    count_starts: bool = Field(
        default=True,
        description="Whether the objective counts what a step starts once for every sharding type in use, where the "
        "cost model and the runtime know it.",
        examples=[True],
    )
    solver: SolverSpec = Field(default_factory=SolverSpec, description="Who searches, and when to stop.")
    checkpoint: CheckpointSpec | None = Field(
        default=None, description="How the job is checkpointed: reported for every plan, and balanced where asked for."
    )
    serving: ServingSpec | None = Field(default=None, description="Requests, for the objective request_latency.")
    previous_plan: PreviousPlanSpec | None = Field(
        default=None, description="A plan that runs already, to move away from only where that pays."
    )
    checkpoint_plan: CheckpointPlanSpec | None = Field(
        default=None,
        description="The plan of the checkpoint that the job starts from: plans that lose its optimizer state are"
        " ruled out.",
    )
