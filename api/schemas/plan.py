"""The plan document, as it is accepted from anywhere for evaluation."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from api.schemas.base import Digest, ModulePath, Name, PrintOut, StrictModel, fields_disagree
from api.schemas.described import PublishedAs, described_by
from api.schemas.hash_table import HashTableModeName
from api.schemas.hugectr_plan import HugeCtrPlan
from api.schemas.shard import MAX_SHARDS_OF_TABLE, ShardDocument, ShardGroupDocument
from api.schemas.spec import MAX_TABLES, SpecDocument
from api.schemas.table import DataTypeName, Fraction, KernelName, PoolingName, SchemeName
from api.schemas.torchrec_plan import TorchRecPlan
from planner.domain.problem.cluster import MAX_RANKS
from planner.output.documents import compact_plan as compact_plan_document
from planner.output.documents import plan as plan_document
from planner.output.documents import step as step_document

RankCount = Annotated[int, Field(ge=1, le=MAX_RANKS)]
#: Of all tables together: they become numbers in memory, 48 bytes each, whatever form the plan has.
MAX_SHARDS_OF_PLAN = 2**24
#: Of a plan that comes with a spec over HTTP: in long form no body has more, and a few bytes must not take gigabytes.
MAX_SHARDS_OF_BODY = 2**21


class _TableFacts(StrictModel):
    """One table's scheme and kernel."""

    name: Name
    module_path: ModulePath = ""
    data_type: DataTypeName | None = None
    pooling: PoolingName | None = None
    hash_table_mode: HashTableModeName | None = None
    sharding_type: SchemeName
    compute_kernel: KernelName
    cache_load_factor: Fraction | None = None
    stash_weights: bool | None = None
    cache_reserved_bytes: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


@described_by(plan_document.TableDocument, others=JsonValue)
class TablePlanDocument(_TableFacts):
    """One table's scheme, kernel and shards, in the order of the runtime."""

    shards: Annotated[list[ShardDocument], Field(min_length=1, max_length=MAX_SHARDS_OF_TABLE, fail_fast=True)]


@described_by(compact_plan_document.CompactTableDocument, others=JsonValue)
class CompactTableDocument(_TableFacts):
    """One table's scheme, kernel and shards, in groups."""

    shards: Annotated[list[ShardGroupDocument], Field(min_length=1, max_length=MAX_SHARDS_OF_TABLE, fail_fast=True)]

    @model_validator(mode="after")
    def _check_number(self) -> Self:
        if self.num_shards > MAX_SHARDS_OF_TABLE:
            raise fields_disagree(f"a table has at most {MAX_SHARDS_OF_TABLE:,} shards", "shards")
        return self

    @property
    def num_shards(self) -> int:
        """Number of shards of the table."""
        return sum(group.num_shards for group in self.shards)


class _PlanFacts(StrictModel):
    """What determines training, but for the tables, and what else is read of a plan from anywhere."""

    schema_version: Literal[1] = 1
    plan_digest: Digest | None = None
    spec_digest: Digest | None = None
    name: Annotated[str, Field(max_length=200)] | None = None
    world_size: RankCount
    ranks_per_host: RankCount
    pod_size: RankCount | None = None
    kv_cache_bytes: Annotated[int, Field(ge=0, le=2**60)] | None = None
    use_index_dedup: bool | None = None
    objective: Annotated[JsonValue, PublishedAs(plan_document.ObjectiveDocument | None)] = None


@described_by(plan_document.PlanDocument, others=JsonValue)
class PlanDocument(_PlanFacts):
    """A sharding plan. Geometry is what counts; the rest is read by people and launchers."""

    tables: Annotated[list[TablePlanDocument], Field(min_length=1, max_length=MAX_TABLES)]


@described_by(compact_plan_document.CompactPlanDocument, others=JsonValue)
class CompactPlanDocument(_PlanFacts):
    """A sharding plan in compact form: equal shards and equal loads of ranks stand there once."""

    form: Literal["compact"]
    tables: Annotated[list[CompactTableDocument], Field(min_length=1, max_length=MAX_TABLES, fail_fast=True)]

    @property
    def num_shards(self) -> int:
        """Number of shards of all tables."""
        return sum(table.num_shards for table in self.tables)

    @model_validator(mode="after")
    def _check_number(self) -> Self:
        if self.num_shards > MAX_SHARDS_OF_PLAN:
            raise fields_disagree(f"all tables together have at most {MAX_SHARDS_OF_PLAN:,} shards", "tables")
        return self


@described_by(plan_document.SliceDocument, others=JsonValue)
class PlanSlice(StrictModel):
    """What one rank needs of a plan; it has no digest of its own."""

    schema_version: Literal[1] = Field(description="Version of the plan document.")
    plan_digest: Digest = Field(description="Digest of the whole plan.")
    spec_digest: Digest
    name: str
    world_size: int = Field(description="Of the whole plan. Unit: ranks.")
    ranks_per_host: int
    pod_size: int | None = Field(default=None, description="Ranks of a pod, where groups are pods. Unit: ranks.")
    kv_cache_bytes: int | None = Field(
        default=None, description="Of every rank, left to keys and values of users, if any are. Unit: bytes."
    )
    use_index_dedup: bool | None = Field(default=None, description="Whether ids are deduplicated.")
    objective: Annotated[JsonValue, PublishedAs(plan_document.ObjectiveDocument)]
    termination: Annotated[JsonValue, PublishedAs(plan_document.PlanTerminationDocument)]
    rank: int
    tables: list[TablePlanDocument]
    ranks: Annotated[list[JsonValue], PublishedAs(list[step_document.RankDocument])]


class EvaluationRequest(StrictModel):
    """A plan from anywhere, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: PlanDocument = Field(description="The plan to score and to verify.")


class CompactEvaluationRequest(StrictModel):
    """A plan in compact form, and the spec that it is judged against."""

    spec: SpecDocument = Field(description="The spec: model, cluster, constraints and cost model.")
    plan: CompactPlanDocument = Field(description="The plan to score and to verify.")

    @model_validator(mode="after")
    def _check_number(self) -> Self:
        if self.plan.num_shards > MAX_SHARDS_OF_BODY:
            most = f"{MAX_SHARDS_OF_BODY:,}"
            raise fields_disagree(f"plans of at most {most} shards are judged over HTTP: use the command line", "plan")
        return self


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
    EvaluationRequest
    | CompactEvaluationRequest
    | TorchRecEvaluationRequest
    | PrintedEvaluationRequest
    | HugeCtrEvaluationRequest
)
