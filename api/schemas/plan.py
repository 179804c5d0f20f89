"""The plan document, as it is accepted from anywhere for evaluation."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from api.schemas.base import Digest, ModulePath, Name, StrictModel
from api.schemas.shard import MAX_SHARDS_OF_TABLE, ShardDocument
from api.schemas.spec import MAX_TABLES, SpecDocument
from api.schemas.table import DataTypeName, Fraction, KernelName, PoolingName, SchemeName
from api.schemas.torchrec_plan import TorchRecPlan
from planner.domain.problem.cluster import MAX_RANKS


class TablePlanDocument(StrictModel):
    """One table's scheme, kernel and shards, in the order of the runtime."""

    name: Name = Field(description="Name of the table.", examples=["cat_0"])
    module_path: ModulePath = Field(default="", description="Path of its embedding module.", examples=[""])
    data_type: DataTypeName | None = Field(default=None, description="Type of the weights.", examples=["fp32"])
    pooling: PoolingName | None = Field(default=None, description="How bags become rows.", examples=["sum"])
    sharding_type: SchemeName = Field(description="Scheme.", examples=["row_wise"])
    compute_kernel: KernelName = Field(description="Kernel.", examples=["fused"])
    cache_load_factor: Fraction | None = Field(default=None, description="Cached share of the rows.", examples=[None])
    shards: Annotated[list[ShardDocument], Field(min_length=1, max_length=MAX_SHARDS_OF_TABLE, fail_fast=True)] = Field(
        description="The shards, at most two per rank of the largest cluster. "
        "A data_parallel table lists one full copy per rank."
    )


class PlanDocument(StrictModel):
    """A sharding plan. Geometry is what counts; the rest is read by people and launchers."""

    schema_version: Literal[1] = Field(default=1, description="Version of this document.", examples=[1])
    plan_digest: Digest | None = Field(default=None, description="Digest of what determines training.")
    spec_digest: Digest | None = Field(default=None, description="Digest of the spec.")
    name: str | None = Field(default=None, max_length=200, description="Name of the model.", examples=["dlrm-dcnv2"])
    world_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] = Field(description="Unit: ranks.", examples=[8])
    ranks_per_host: Annotated[int, Field(ge=1, le=MAX_RANKS)] = Field(description="Unit: ranks.", examples=[8])
    objective: JsonValue = Field(default=None, description="Predicted objective, bound and gap. Unit: seconds.")
    termination: JsonValue = Field(default=None, description="Why the search ended.")
    tables: Annotated[list[TablePlanDocument], Field(min_length=1, max_length=MAX_TABLES)] = Field(
        description="Every table of the model."
    )
    ranks: JsonValue = Field(default=None, description="Predicted load of every rank.")
    phases: JsonValue = Field(default=None, description="Predicted seconds of every phase.")
    tiers: JsonValue = Field(
        default=None, description="Predicted traffic of host memory, storage-class memory and block storage."
    )
    checkpoint: JsonValue = Field(default=None, description="What checkpoints take; null where the spec has none.")
    serving: JsonValue = Field(default=None, description="What requests ask of the cards; null of a training step.")
    prediction: JsonValue = Field(default=None, description="How well a learned model knows the seconds; else null.")
    surrogate: JsonValue = Field(default=None, description="The additive model of the search; null without one.")
    movement: JsonValue = Field(default=None, description="What moves from the previous plan; null without one.")
    provenance: JsonValue = Field(default=None, description="Cost model, hardware, evidence, seed and versions.")


class PlanSlice(StrictModel):
    """What one rank needs of a plan; it has no digest of its own."""

    schema_version: Literal[1] = Field(description="Version of the plan document.", examples=[1])
    plan_digest: Digest = Field(description="Digest of the whole plan.")
    spec_digest: Digest = Field(description="Digest of the spec.")
    name: str = Field(description="Name of the model.", examples=["dlrm-dcnv2"])
    world_size: int = Field(description="Of the whole plan. Unit: ranks.", examples=[8])
    ranks_per_host: int = Field(description="Unit: ranks.", examples=[8])
    objective: JsonValue = Field(description="Predicted objective, bound and gap. Unit: seconds.")
    termination: JsonValue = Field(description="Why the search ended.")
    rank: int = Field(description="The rank, from 0.", examples=[0])
    tables: list[TablePlanDocument] = Field(
        description="The tables that have shards on the rank, with these shards alone."
    )
    ranks: list[JsonValue] = Field(description="Predicted load of the rank.")


class EvaluationRequest(StrictModel):
    """A plan from anywhere, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: PlanDocument = Field(description="The plan to score and to verify.")


class TorchRecEvaluationRequest(StrictModel):
    """A plan that TorchRec wrote, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: TorchRecPlan = Field(description="The plan as ``ShardingPlan._serialize`` has it.")
