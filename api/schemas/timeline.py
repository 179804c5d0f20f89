"""What ranks do in a step of a plan, and when."""

from typing import Literal

from pydantic import Field

from api.schemas.base import Document

#: A value for each rank, or one for all of them.
Column = list[float] | float


class BarDocument(Document):
    """A part of the step, on every rank that has it."""

    name: str = Field(description="Phase, part of the dense model, copy, or sharding type.", examples=["forward_comm"])
    kind: Literal["phase", "sharding_type", "starts", "wait", "dense", "all_reduce", "copy", "overhead", "upload"] = (
        Field(description="What it is. Those of sharding types and starts lie inside their phase.")
    )
    track: Literal["step", "next_batch", "stash", "all_reduce", "checkpoint"] = Field(
        description="Row of the rank: what the step consists of, or what goes on meanwhile."
    )
    phase: str | None = Field(description="Phase of the embeddings that it is or belongs to; null of other bars.")
    module: str | None = Field(description="Path of the module, of parts of a phase; null of other bars.")
    start_seconds: Column = Field(description="After the step began, of each rank, or of all. Unit: seconds.")
    duration_seconds: Column = Field(
        description="Of each rank, or of all; 0 on a rank that does not have it. Unit: seconds."
    )
    whole_seconds: float | None = Field(
        description="Of an upload, which goes on after the step: its own length; null of other bars. Unit: seconds."
    )


class TimelineDocument(Document):
    """One step, or one request, laid out from its beginning."""

    unit: Literal["step", "request"] = Field(description="What the seconds are those of.")
    seconds: float = Field(description="When the last bar ends: the plan's own step. Unit: seconds.")
    num_ranks: int = Field(description="Ranks of the plan. Unit: ranks.", examples=[8])
    bars: list[BarDocument] = Field(description="In the order of the step; parts of a phase follow it.")
