"""How the job is checkpointed, as a spec says it, and what that takes under a plan."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from api.schemas.base import Document, StrictModel
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
    bits: Literal[32, 16, 8, 4] | None = Field(
        default=None,
        description="Bits of a weight on the store; weights that are narrower, and optimizer state, stay as they are, "
        "and rows of 8 and 4 bits carry a scale and a bias of 2 bytes each. null stores weights as they are.",
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

    @model_validator(mode="after")
    def _full_is_full(self) -> "CheckpointSpec":
        if self.policy == "full" and self.full_every not in (None, 1):
            raise ValueError("with the policy full every checkpoint is: leave full_every out, or name another policy")
        return self


class CheckpointSizeDocument(Document):
    """One kind of checkpoint under a plan."""

    bytes: int = Field(description="Of all hosts together. Unit: bytes.")
    snapshot_seconds: float = Field(description="Training stands still until the slowest rank is done. Unit: seconds.")
    slowest_rank: int = Field(description="The rank that the snapshot waits for.")
    upload_seconds: float = Field(description="Of the slowest host, beside training. Unit: seconds.")
    slowest_host: int = Field(description="The host that uploads longest.")
    mean_upload_seconds: float = Field(description="Over all hosts. Unit: seconds.")


class RankCheckpointDocument(Document):
    """What one rank stores."""

    rank: int = Field(description="Rank.")
    full_bytes: int = Field(description="In a full checkpoint. Unit: bytes.")
    incremental_bytes: int | None = Field(description="In the largest increment. Unit: bytes.")


class HostCheckpointDocument(Document):
    """What one host stores."""

    host: int = Field(description="Host.")
    full_bytes: int = Field(description="In a full checkpoint. Unit: bytes.")
    incremental_bytes: int | None = Field(description="In the largest increment. Unit: bytes.")


class CheckpointDocument(Document):
    """What checkpoints take under a plan."""

    policy: str = Field(description="As in the spec.", examples=["intermittent"])
    full_every: int = Field(description="Checkpoints from one full one to the next.", examples=[7])
    interval_steps: int = Field(description="As in the spec. Unit: steps.")
    interval_seconds: float = Field(description="Under the plan's step time, with the dense part. Unit: seconds.")
    full: CheckpointSizeDocument
    incremental: CheckpointSizeDocument | None = Field(description="The largest one; null where all are full.")
    restore_seconds: float = Field(description="Slowest host's reading of all that it needs. Unit: seconds.")
    lost_seconds_per_step: float = Field(
        description="Expected: snapshots, and what failures lose to uploads and restores. Unit: seconds."
    )
    balanced: bool = Field(description="Whether the objective counts them.")
    snapshot_evidence: str = Field(description="The weakest rate behind the snapshots.", examples=["measured"])
    fits: bool = Field(description="Whether a full checkpoint is stored before the next one is due.")
    warning: str | None = Field(description="Where it is not: by how much, and the way out.")
    by_rank: list[RankCheckpointDocument]
    by_host: list[HostCheckpointDocument]
