"""What may leave the accelerators' memory while the dense part of a step runs."""

from typing import Annotated

from pydantic import Field

from api.schemas.base import Name, StrictModel
from api.schemas.dense import MAX_SECONDS

MAX_STASHED_TABLES = 20_000


class StashSpec(StrictModel):
    """Weights that are copied to host memory after the lookups of a step, and back before their backward pass."""

    tables: Annotated[list[Name], Field(min_length=1, max_length=MAX_STASHED_TABLES, fail_fast=True)] | None = Field(
        default=None,
        description="Tables that may be stashed; null: all with the kernel fused.",
        examples=[["user_id", "item_id"]],
    )
    link_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="Share of the rates of the host link that the copies have.", examples=[0.9]
    )
    max_wait_seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS)] = Field(
        default=0.0,
        description="Seconds that dense compute may wait for the copies, in each direction. Unit: seconds.",
        examples=[0.0],
    )
