"""What is asked of a smallest fleet: the fewest hosts that reach a target."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from api.schemas.base import StrictModel, fields_disagree
from api.schemas.studies.base import MAX_POINTS, RangeSpec, StudySpec, VariantSpec


class TargetSpec(StrictModel):
    """What a fleet has to reach; of a step its seconds, or samples or requests per second."""

    samples_per_second: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="At least. Unit: samples per second.", examples=[2_000_000]
    )
    step_seconds: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="At most. Unit: seconds.", examples=[None]
    )
    requests_per_second: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Sustained, at least. Unit: requests per second.", examples=[None]
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise fields_disagree("give one target", *(given or ("samples_per_second",)))
        return self


class SmallestFleetSpec(StudySpec):
    """Asks for the fewest hosts that reach a target, of one kind of machine or several."""

    kind: Literal["smallest_fleet"] = Field(description="Kind of study.", examples=["smallest_fleet"])
    target: TargetSpec = Field(description="What has to be reached.", examples=[{"samples_per_second": 2_000_000}])
    hosts: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=MAX_POINTS)] | None = Field(
        default=None,
        description="Numbers of hosts that may be had; null with host_range. Unit: hosts.",
        examples=[None],
    )
    host_range: RangeSpec | None = Field(
        default=None, description="The same as a range.", examples=[{"first": 1, "last": 64, "step": 1}]
    )
    machines: Annotated[list[VariantSpec], Field(max_length=50)] = Field(
        default_factory=list,
        description="Kinds of machines that may be had: what each sets in the spec. None: the spec's own.",
        examples=[[{"label": "h100", "set": {"hardware.profile": "dgx-h100-80g"}}]],
    )

    @model_validator(mode="after")
    def _has_hosts(self) -> Self:
        if (self.hosts is None) == (self.host_range is None):
            raise fields_disagree("give either hosts or host_range", "hosts", "host_range")
        return self
