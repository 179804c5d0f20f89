"""The plan document, as it is accepted from anywhere for evaluation."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from api.schemas.base import Digest, ModulePath, Name, PrintOut, StrictModel
from api.schemas.described import described_by
from api.schemas.hugectr_plan import HugeCtrPlan
from api.schemas.shard import MAX_SHARDS_OF_TABLE, ShardDocument
from api.schemas.spec import MAX_TABLES, SpecDocument
from api.schemas.table import DataTypeName, Fraction, KernelName, PoolingName, SchemeName
from api.schemas.torchrec_plan import TorchRecPlan
from planner.domain.problem.cluster import MAX_RANKS
from planner.output import plan_document

RankCount = Annotated[int, Field(ge=1, le=MAX_RANKS)]


@described_by(plan_document.TableDocument, others=JsonValue)
class TablePlanDocument(StrictModel):
    """One table's scheme, kernel and shards, in the order of the runtime."""

    name: Name
    module_path: ModulePath = ""
    data_type: DataTypeName | None = None
    pooling: PoolingName | None = None
    sharding_type: SchemeName
    compute_kernel: KernelName
    cache_load_factor: Fraction | None = None
    cache_reserved_bytes: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    shards: Annotated[list[ShardDocument], Field(min_length=1, max_length=MAX_SHARDS_OF_TABLE, fail_fast=True)]


@described_by(plan_document.PlanDocument, others=JsonValue)
class PlanDocument(StrictModel):
    """A sharding plan. Geometry is what counts; the rest is read by people and launchers."""

    schema_version: Literal[1] = 1
    plan_digest: Digest | None = None
    spec_digest: Digest | None = None
    name: Annotated[str, Field(max_length=200)] | None = None
    world_size: RankCount
    ranks_per_host: RankCount
    objective: JsonValue = None
    tables: Annotated[list[TablePlanDocument], Field(min_length=1, max_length=MAX_TABLES)]


@described_by(plan_document.SliceDocument, others=JsonValue)
class PlanSlice(StrictModel):
    """What one rank needs of a plan; it has no digest of its own."""

    schema_version: Literal[1] = Field(description="Version of the plan document.")
    plan_digest: Digest = Field(description="Digest of the whole plan.")
    spec_digest: Digest
    name: str
    world_size: int = Field(description="Of the whole plan. Unit: ranks.")
    ranks_per_host: int
    objective: JsonValue
    termination: JsonValue
    rank: int
    tables: list[TablePlanDocument]
    ranks: list[JsonValue]


class EvaluationRequest(StrictModel):
    """A plan from anywhere, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: PlanDocument = Field(description="The plan to score and to verify.")


class TorchRecEvaluationRequest(StrictModel):
    """A plan that TorchRec wrote, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: TorchRecPlan = Field(description="The plan as ``ShardingPlan._serialize`` has it.")


class PrintedEvaluationRequest(StrictModel):
    """A plan that TorchRec's planner printed, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: PrintOut = Field(description="The statistics of the planner (``EmbeddingStats``), out of a log.")


class HugeCtrEvaluationRequest(StrictModel):
    """A plan of HugeCTR's, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: HugeCtrPlan = Field(description="The plan as ``EmbeddingCollectionConfig.shard`` takes it.")


#: A plan in any form, and the spec that it is judged against.
AnyEvaluationRequest = (
    EvaluationRequest | TorchRecEvaluationRequest | PrintedEvaluationRequest | HugeCtrEvaluationRequest
)
