"""The rectangles that tables are cut into, as plans and pins spell them."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import StrictModel
from planner.domain.problem.cluster import MAX_RANKS

#: A scheme cuts a table into at most two column pieces per host, each into row blocks over
#: the ranks of a host, or into as many parts as there are ranks: two shards per rank.
MAX_SHARDS_OF_TABLE = 2 * MAX_RANKS

Count = Annotated[int, Field(ge=0, le=2**40)]
TierName = Literal["hbm", "ddr", "scm", "ssd"]


class Rectangle(StrictModel):
    """A part of a table on one rank."""

    rank: Annotated[int, Field(ge=0, lt=MAX_RANKS)] = Field(description="Rank that holds it.", examples=[0])
    row_offset: Count = Field(description="First row. Unit: rows.", examples=[0])
    num_rows: Count = Field(description="Number of rows. Unit: rows.", examples=[5_000_000])
    column_offset: Count = Field(description="First column. Unit: columns.", examples=[0])
    num_columns: Count = Field(description="Number of columns. Unit: columns.", examples=[128])


class ShardDocument(Rectangle):
    """A rectangle of a table on one rank, in one memory tier."""

    tier: TierName = Field(default="hbm", description="Memory tier.", examples=["hbm"])
    bytes: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Bytes of the shard, as its author counted them; not used.", examples=[2_580_000_000]
    )


class PinnedShardSpec(Rectangle):
    """A rectangle of a pinned table: a shard of a plan can be pasted as it is."""

    tier: TierName | None = Field(
        default=None, description="Memory tier; where given, the one where the kernel keeps rows.", examples=["hbm"]
    )
    bytes: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Bytes of the shard in the plan that it comes from; not used.", examples=[None]
    )
