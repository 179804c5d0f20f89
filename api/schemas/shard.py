"""The rectangles that tables are cut into, as plans and pins spell them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue
from pydantic_core import PydanticCustomError

from api.schemas.base import StrictModel
from api.schemas.described import described_by
from planner.domain.formats.compact_form import RANKS_PATTERN, num_shards, rank_ranges
from planner.domain.problem.cluster import MAX_RANKS
from planner.output.documents import compact_plan as compact_plan_document
from planner.output.documents import plan as plan_document

#: A scheme cuts a table into at most two column pieces per host, each into row blocks over
#: the ranks of a host, or into as many parts as there are ranks: two shards per rank.
MAX_SHARDS_OF_TABLE = 2 * MAX_RANKS

Count = Annotated[int, Field(ge=0, le=2**40)]
TierName = Literal["hbm", "ddr", "scm", "ssd"]


@described_by(plan_document.ShardDocument)
class Rectangle(StrictModel):
    """A part of a table on one rank."""

    rank: Annotated[int, Field(ge=0, lt=MAX_RANKS)]
    row_offset: Count
    num_rows: Count
    column_offset: Count
    num_columns: Count


@described_by(plan_document.ShardDocument, others=JsonValue)
class ShardDocument(Rectangle):
    """A rectangle of a table on one rank, in one memory tier."""

    tier: TierName | None = Field(
        default=None, description="Memory tier; null for the one where the kernel keeps rows.", examples=["hbm"]
    )
    bytes: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Bytes of the shard, as its author counted them; not used."
    )


def _checked_ranks(text: str) -> str:
    """Refuse ranks that no cluster has, and texts that stand for more shards than a table has.

    Ends of ranges alone are read: a few characters stand for a million ranks.
    """
    try:
        ranges = rank_ranges(text)
    except ValueError as error:
        raise PydanticCustomError("ranks", "{reason}", {"reason": str(error)}) from None
    if max(one[-1] for one in ranges) >= MAX_RANKS or sum(map(len, ranges)) > MAX_SHARDS_OF_TABLE:
        reason = f"ranks are below {MAX_RANKS:,}, and a table has at most {MAX_SHARDS_OF_TABLE:,} shards"
        raise PydanticCustomError("ranks", "{reason}", {"reason": reason})
    return text


RankList = Annotated[str, Field(pattern=RANKS_PATTERN, max_length=2**16), AfterValidator(_checked_ranks)]


@described_by(compact_plan_document.ShardGroupDocument, others=JsonValue)
class ShardGroupDocument(StrictModel):
    """Shards of equal size that follow one another: the first of them, and how the others differ."""

    ranks: RankList
    cut: Literal["rows", "columns"] | None
    row_offset: Count
    num_rows: Count
    column_offset: Count
    num_columns: Count
    tier: TierName | None = Field(
        default=None, description="Memory tier; null for the one where the kernel keeps rows.", examples=["hbm"]
    )
    bytes: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Bytes of each shard, as its author counted them; not used."
    )

    @property
    def num_shards(self) -> int:
        """Number of shards of the group."""
        return num_shards({"ranks": self.ranks})


class PinnedShardSpec(Rectangle):
    """A rectangle of a pinned table: a shard of a plan can be pasted as it is."""

    tier: TierName | None = Field(
        default=None, description="Memory tier; where given, the one where the kernel keeps rows.", examples=["hbm"]
    )
    bytes: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Bytes of the shard in the plan that it comes from; not used.", examples=[None]
    )
