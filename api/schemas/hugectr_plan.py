"""A sharding plan of HugeCTR's embedding collection, as ``shardplan export --format hugectr`` and scripts write it."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from api.schemas.base import Name, StrictModel
from api.schemas.spec import MAX_TABLES
from planner.domain.problem.cluster import MAX_RANKS

_Position = Annotated[int, Field(ge=0, lt=MAX_TABLES)]
#: A table by its name, or by its position among ``tables``, or among those of the spec.
TableReference = Name | _Position
_Pieces = Annotated[int, Field(ge=1, le=2**20)]
_Tables = Annotated[list[TableReference], Field(max_length=MAX_TABLES)]


class HugeCtrTable(StrictModel):
    """A table (``EmbeddingTableConfig``)."""

    name: Name
    max_vocabulary_size: Annotated[int, Field(ge=-1, le=2**40)] | None = Field(default=None, description="Unit: rows.")
    ev_size: Annotated[int, Field(ge=1, le=2**20)] | None = Field(default=None, description="Unit: columns.")
    combiner: JsonValue = Field(default=None, description="Not used.")
    shards: JsonValue = Field(default=None, description="Not used: it follows from the rest.")


class HugeCtrPlan(StrictModel):
    """What ``EmbeddingCollectionConfig.shard`` takes, and what ``shardplan export`` writes around it."""

    shard_matrix: Annotated[list[_Tables], Field(min_length=1, max_length=MAX_RANKS)] = Field(
        description="The tables that each GPU has all or part of.", examples=[[["cat_0", "cat_1"], ["cat_0"]]]
    )
    shard_strategy: Annotated[
        list[tuple[Literal["mp", "dp"], list[TableReference | tuple[TableReference, _Pieces]]]],
        Field(min_length=1, max_length=MAX_TABLES),
    ] = Field(
        description="Groups of tables: `mp` lie on the GPUs of the matrix, in so many column pieces, `dp` on all GPUs.",
        examples=[[["mp", ["cat_0", ["cat_1", 2]]]]],
    )
    tables: Annotated[list[HugeCtrTable], Field(max_length=MAX_TABLES)] | None = Field(
        default=None, description="The tables; sizes are compared with those of the spec."
    )
    num_gpus: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(default=None, description="Unit: GPUs.")
    num_nodes: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(default=None, description="Unit: nodes.")
    vvgpu: Annotated[list[list[int]], Field(max_length=MAX_RANKS)] | None = Field(
        default=None, description="The GPUs of each node; read where num_nodes is left out."
    )
    compression_strategy: JsonValue = Field(default=None, description="Not used.")
    comm_strategy: JsonValue = Field(default=None, description="Not used.")
    rows: JsonValue = Field(default=None, description="Not used: rows are dealt out by their remainder.")
    format: JsonValue = Field(default=None, description="Not used.")
    format_version: JsonValue = Field(default=None, description="Not used.")
    plan_digest: JsonValue = Field(default=None, description="Not used: it is of the plan that this was exported from.")
    content_sha256: JsonValue = Field(default=None, description="Not used.")
