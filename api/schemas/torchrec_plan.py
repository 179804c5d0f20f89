"""A sharding plan as TorchRec writes it (``ShardingPlan._serialize``), as it is accepted from anywhere."""

from typing import Annotated

from pydantic import Field, JsonValue

from api.schemas.base import ModulePath, Name, StrictModel
from api.schemas.shard import MAX_SHARDS_OF_TABLE, Count
from api.schemas.table import Fraction, KernelName, SchemeName
from planner.domain.problem.cluster import MAX_RANKS

_Pair = Annotated[list[Count], Field(min_length=2, max_length=2)]
_Rank = Annotated[int, Field(ge=0, lt=MAX_RANKS)]


class TorchRecShard(StrictModel):
    """A rectangle of a table on one rank (``ShardMetadata``)."""

    shard_offsets: _Pair = Field(description="First row and first column.", examples=[[0, 64]])
    shard_sizes: _Pair = Field(description="Rows and columns.", examples=[[5_000_000, 64]])
    placement: Annotated[str, Field(max_length=40, pattern=r"^rank:[0-9]{1,6}(/[a-z]+(:[0-9]{1,6})?)?$")] = Field(
        description="Rank, and the device on its host.", examples=["rank:9/cuda:1"]
    )


class TorchRecCache(StrictModel):
    """What is known of a table's cache (``CacheParams``)."""

    load_factor: Fraction | None = Field(default=None, description="Cached share of the rows.", examples=[0.2])
    reserved_memory: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Device memory that FBGEMM leaves free when it allocates the cache; tables with different values"
        " never share a cache. Unit: bytes.",
        examples=[0.002],
    )


class TorchRecTable(StrictModel):
    """How one table is cut (``ParameterSharding``)."""

    sharding_type: SchemeName = Field(description="Scheme.", examples=["row_wise"])
    compute_kernel: KernelName = Field(description="Kernel.", examples=["fused"])
    ranks: Annotated[list[_Rank], Field(max_length=MAX_SHARDS_OF_TABLE)] | None = Field(
        default=None, description="Ranks of the shards, in their order; read where there are no shards."
    )
    shards: Annotated[list[TorchRecShard], Field(min_length=1, max_length=MAX_SHARDS_OF_TABLE)] | None = Field(
        default=None, description="The shards; none of a data_parallel table."
    )
    cache_params: TorchRecCache | None = Field(
        default=None, description="Of fused_uvm_caching; TorchRec leaves it out."
    )


class TorchRecPlan(StrictModel):
    """A sharding plan of TorchRec: module paths, their tables, how each is cut.

    What ``shardplan export`` writes around it may stand there; of that, the sizes of the cluster are compared.
    """

    plan: Annotated[dict[ModulePath, dict[Name, TorchRecTable]], Field(min_length=1)] = Field(
        description="By path of the embedding module, then by table."
    )
    world_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(default=None, description="Unit: ranks.")
    local_world_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(default=None, description="Unit: ranks.")
    intra_group_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = Field(
        default=None, description="Ranks of a pod, where groups are pods of hosts. Unit: ranks."
    )
    device: str | None = Field(default=None, description="Where the tables are trained.", examples=["cuda"])
    format: JsonValue = Field(default=None, description="Not used.")
    format_version: JsonValue = Field(default=None, description="Not used.")
    torchrec_min_version: JsonValue = Field(default=None, description="Not used.")
    plan_digest: JsonValue = Field(default=None, description="Not used: it is of the plan that this was exported from.")
    tables: JsonValue = Field(default=None, description="Not used.")
    content_sha256: JsonValue = Field(default=None, description="Not used.")
