"""Ordered objectives, as a spec states them."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import StrictModel

ObjectiveName = Literal["step_time", "fullest_rank", "checkpoint_upload", "moved_bytes"]


class OrderedObjectiveSpec(StrictModel):
    """One of the ordered objectives, and how much it may worsen each of those before it."""

    name: ObjectiveName = Field(
        description="What to make small: step_time; fullest_rank, the largest share of its device memory that a rank "
        "has in use; checkpoint_upload, the most bytes of a full checkpoint that a rank stores; moved_bytes, from the "
        "previous plan.",
        examples=["fullest_rank"],
    )
    tolerance: Annotated[float, Field(ge=0, le=100)] = Field(
        default=0.0,
        description="Part of its value by which each objective before may become worse.",
        examples=[0.02],
    )
    tolerance_seconds: Annotated[float, Field(ge=0, le=1e6)] = Field(
        default=0.0,
        description="What step_time may become longer by, if it comes before; added to the relative tolerance. "
        "Unit: seconds.",
        examples=[0.0],
    )
    tolerance_bytes: Annotated[float, Field(ge=0, le=2.0**60)] = Field(
        default=0.0,
        description="What an objective in bytes that comes before may become larger by; added to the relative "
        "tolerance. Unit: bytes.",
        examples=[0],
    )
