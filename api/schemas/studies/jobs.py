"""What is asked for several jobs on one fleet."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from api.schemas.base import Title, fields_disagree
from api.schemas.studies.base import SpecOfPoints, StudyBase, VariantSpec


class JobSpec(SpecOfPoints):
    """A job that wants a part of a fleet."""

    label: Title = Field(description="How people know the job.", examples=["ads-ranker"])
    priority: Annotated[int, Field(ge=-100, le=100)] = Field(
        default=0, description="Targets of jobs of higher priority are met first.", examples=[0]
    )
    weight: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="What the job's rate counts, as a share of its best one.", examples=[1.0]
    )
    samples_per_second: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Rate that the job needs; null with samples, or for none.", examples=[None]
    )
    samples: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="What is left to train; with deadline_seconds. Unit: samples.", examples=[None]
    )
    deadline_seconds: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Time that is left for the samples. Unit: seconds.", examples=[None]
    )
    hosts: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Numbers of whole hosts that the job may have; null with shapes.",
        examples=[[1, 2, 4]],
    )
    shapes: Annotated[list[VariantSpec], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Clusters that the job may have, each of which sets fields of its spec: hosts, ranks of each host.",
        examples=[None],
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.hosts is None) == (self.shapes is None):
            raise fields_disagree("give either hosts or shapes", "hosts", "shapes")
        if (self.samples is None) != (self.deadline_seconds is None):
            raise fields_disagree("samples and deadline_seconds go together", "samples", "deadline_seconds")
        if self.samples is not None and self.samples_per_second is not None:
            raise fields_disagree("give either a rate, or samples and a deadline", "samples_per_second", "samples")
        return self

    @property
    def needed_samples_per_second(self) -> float | None:
        """The rate that the job needs."""
        if self.samples is not None and self.deadline_seconds is not None:
            return self.samples / self.deadline_seconds
        return self.samples_per_second


class JobsSpec(StudyBase):
    """Asks which job should have which part of a fleet."""

    kind: Literal["jobs"] = Field(description="Kind of study.", examples=["jobs"])
    num_hosts: Annotated[int, Field(ge=1, le=4096)] = Field(
        description="Hosts of the fleet, all alike. Unit: hosts.", examples=[4]
    )
    ranks_per_host: Annotated[int, Field(ge=1, le=1024)] = Field(
        description="Ranks of a host, which several jobs may share. Unit: ranks.", examples=[8]
    )
    jobs: Annotated[list[JobSpec], Field(min_length=1, max_length=50)] = Field(
        description="Jobs that want a part of the fleet."
    )
