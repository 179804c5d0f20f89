"""How the job is checkpointed, as a spec states it."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import StrictModel
from planner.domain.problem.checkpoint import (
    DEFAULT_DOWNLOAD_BYTES_PER_SECOND,
    DEFAULT_FULL_EVERY,
    DEFAULT_INTERVALS_BETWEEN_FAILURES,
    DEFAULT_UPLOAD_BYTES_PER_SECOND,
)

PolicyName = Literal["full", "one_shot", "consecutive", "intermittent"]
StoreRate = Annotated[float, Field(ge=1, le=1e18)]


class CheckpointSpec(StrictModel):
    """When checkpoints are taken, what they store, and how fast a host reaches the store."""

    interval_steps: Annotated[int, Field(ge=1, le=10**9)] = Field(
        description="Steps from one checkpoint to the next. Unit: steps.", examples=[20_000]
    )
    policy: PolicyName = Field(
        default="full",
        description="full: all rows every time. The others store modified rows between full checkpoints: one_shot and "
        "intermittent those since the last full one, consecutive those since the last of any kind; intermittent takes "
        "a full one as soon as that is cheaper.",
        examples=["intermittent"],
    )
    full_every: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None,
        description="Checkpoints from one full one to the next, of intermittent at most; null is "
        f"{DEFAULT_FULL_EVERY}, and 1 for the policy full. Unit: checkpoints.",
        examples=[DEFAULT_FULL_EVERY],
    )
    bits: Literal[32, 16, 8, 4, 2] | None = Field(
        default=None,
        description="Bits of a weight on the store; weights that are narrower, and optimizer state, stay as they are, "
        "and rows of 8, 4 and 2 bits carry a scale and a bias of 2 bytes each. null stores weights as they are.",
        examples=[8],
    )
    upload_bytes_per_second: StoreRate = Field(
        default=DEFAULT_UPLOAD_BYTES_PER_SECOND,
        description="Rate at which one host writes to the store. Unit: bytes per second.",
        examples=[DEFAULT_UPLOAD_BYTES_PER_SECOND],
    )
    download_bytes_per_second: StoreRate = Field(
        default=DEFAULT_DOWNLOAD_BYTES_PER_SECOND,
        description="Rate at which one host reads from the store. Unit: bytes per second.",
        examples=[DEFAULT_DOWNLOAD_BYTES_PER_SECOND],
    )
    intervals_between_failures: Annotated[float, Field(ge=0.001, le=1e9)] = Field(
        default=DEFAULT_INTERVALS_BETWEEN_FAILURES,
        description="Intervals from one failure of the job to the next, on average: what uploads and restores cost. "
        "Unit: intervals.",
        examples=[DEFAULT_INTERVALS_BETWEEN_FAILURES],
    )
    balance: bool = Field(
        default=False,
        description="Whether what checkpoints cost is a part of the objective, as the phase checkpoint.",
        examples=[False],
    )
