"""A cache of users' keys and values, which shares the memory of the cards with the tables."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import StrictModel
from api.schemas.dense import MAX_SECONDS

Count = Annotated[int, Field(ge=1, le=2**24)]
Bytes = Annotated[float, Field(ge=0, le=2.0**60)]
Users = Annotated[float, Field(ge=0, le=1e12)]
HitRate = Annotated[float, Field(ge=0, le=1)]
HitPoint = tuple[Users, HitRate]


class KvShapeSpec(StrictModel):
    """Keys and values of a token, layer by layer."""

    layers: Count = Field(description="Layers that keep keys and values. Unit: layers.", examples=[12])
    kv_heads: Count = Field(description="Heads with keys and values of their own. Unit: heads.", examples=[8])
    head_dim: Count = Field(description="Width of a head. Unit: columns.", examples=[64])
    data_type: Literal["fp32", "fp16", "bf16", "fp8", "int8"] = Field(
        default="bf16", description="Type of keys and values.", examples=["bf16"]
    )


class KvCacheSpec(StrictModel):
    """Keys and values that a host keeps of users, in equal parts on all its cards."""

    sizes_bytes: Annotated[list[Bytes], Field(min_length=1, max_length=32, fail_fast=True)] = Field(
        description="Bytes of every card that the cache may take, increasing: one is given, of several the planner "
        "chooses. Unit: bytes.",
        examples=[[0, 2_000_000_000, 4_000_000_000]],
    )
    bytes_per_token: Annotated[float, Field(gt=0, le=2.0**40)] | None = Field(
        default=None,
        description="Of all layers, on all cards together; give this or shape. Unit: bytes.",
        examples=[24_576],
    )
    shape: KvShapeSpec | None = Field(
        default=None, description="In place of bytes_per_token: layers, heads, width and type."
    )
    tokens_per_user: Annotated[float, Field(gt=0, le=1e9)] = Field(
        description="Tokens that are kept of a user, on average. Unit: tokens.", examples=[1024]
    )
    hit_rates: Annotated[list[HitPoint], Field(min_length=1, max_length=1000, fail_fast=True)] = Field(
        description="Points as you measured them: users in the cache, and the share of requests that find theirs. "
        "Linear between points, from no users and no hits to the first, constant after the last.",
        examples=[[[10_000, 0.35], [50_000, 0.6], [200_000, 0.8]]],
    )
    recompute_seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS)] = Field(
        description="Seconds that a miss takes on every card, as you measured them. Unit: seconds.", examples=[0.008]
    )
