"""What is asked of a portfolio: plans for several sizes of a cluster."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from api.schemas.base import StrictModel, fields_disagree
from api.schemas.studies.base import StudySpec

MAX_MEMBERS = 16
HostCount = Annotated[int, Field(ge=1, le=4096)]
Steps = Annotated[int, Field(ge=1, le=10**12)]


class RestartSpec(StrictModel):
    """What failures and spares cost, as the user knows it. Nothing of this is built in."""

    host_failures_per_day: Annotated[float, Field(gt=0, le=1_000)] = Field(
        description="Of one host, on average. Unit: failures per day.", examples=[0.002]
    )
    repair_hours: Annotated[float, Field(ge=0, le=100_000)] = Field(
        description="From a failure until the host, or another one, is there. Unit: hours.", examples=[24]
    )
    startup_seconds: Annotated[float, Field(ge=0, le=1e6)] = Field(
        description="From a failure to the first step, without the bytes of tables. Unit: seconds.", examples=[180]
    )
    repeated_seconds: Annotated[float, Field(ge=0, le=1e6)] = Field(
        default=0.0,
        description="Training since the last checkpoint, which a failure loses, on average. Unit: seconds.",
        examples=[600],
    )
    checkpoint_bytes_per_second: Annotated[float, Field(gt=0, le=1e18)] = Field(
        description="Rate at which one host reads from the store. Unit: bytes per second.", examples=[2e9]
    )
    spare_price_per_hour: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Of one host that waits, in the currency of the study; null: what a host of prices costs.",
        examples=[None],
    )


class PortfolioSpec(StudySpec):
    """Plans a spec for several numbers of hosts, so that a job goes from one plan to the next with few moved bytes."""

    kind: Literal["portfolio"] = Field(description="Kind of study.", examples=["portfolio"])
    hosts: Annotated[list[HostCount], Field(min_length=2, max_length=MAX_MEMBERS)] = Field(
        description="Hosts of each member, those of the main plan first. Unit: hosts.", examples=[[16, 15, 14, 12, 18]]
    )
    batch: Literal["per_rank", "global"] = Field(
        default="per_rank",
        description="What all members have alike: the batch of a rank, or that of all ranks, which each divides.",
        examples=["per_rank"],
    )
    max_step_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.01,
        description="By what part the step of a member may be longer than the best that was found for its hosts.",
        examples=[0.01],
    )
    remaining_steps: Annotated[list[Steps], Field(min_length=1, max_length=6)] = Field(
        default=[3, 10, 30, 100, 300],
        description="Steps over which moved bytes are to pay for themselves: each makes a candidate, fewer steps one"
        " that moves less. Unit: steps.",
        examples=[[3, 10, 30, 100, 300]],
    )
    lost: Literal["last", "any"] = Field(
        default="last",
        description="Which host is gone if hosts become fewer: the last, or any, which counts the bytes of the worst."
        " Several lost hosts have consecutive numbers.",
        examples=["last"],
    )
    lost_host: Annotated[int, Field(ge=0, lt=4096)] | None = Field(
        default=None,
        description="Number of the first host that is gone, from 0, in place of the last; at most the last that leaves"
        " enough hosts after it.",
        examples=[None],
    )
    numbering: Literal["in_order", "fill"] = Field(
        default="in_order",
        description="How the launcher numbers the hosts that are left: in_order, they close up; fill, the last ones"
        " take the numbers of lost ones.",
        examples=["in_order"],
    )
    restart: RestartSpec | None = Field(
        default=None, description="Compares restarts with a spare host, by these numbers.", examples=[None]
    )

    @field_validator("hosts", "remaining_steps")
    @classmethod
    def _names_each_once(cls, value: list[int]) -> list[int]:
        if len(set(value)) < len(value):
            raise fields_disagree("a number stands twice")
        return value

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.lost_host is not None and self.lost == "any":
            raise fields_disagree("lost_host names a host, and lost is any", "lost_host", "lost")
        if self.global_batch_size is not None and self.batch == "per_rank":
            raise fields_disagree("global_batch_size is the batch of all ranks: batch is global", "batch")
        return self
