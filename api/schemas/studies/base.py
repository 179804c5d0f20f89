"""What every kind of study asks for."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from api.schemas.base import Name, StrictModel, Title, fields_disagree
from api.schemas.described import PublishedAs
from api.schemas.spec import SpecDocument

MAX_POINTS = 2_000
FIELD_PATTERN = r"^[A-Za-z0-9_*][^\s=]{0,199}$"
FieldPath = Annotated[str, Field(pattern=FIELD_PATTERN)]


class VariantSpec(StrictModel):
    """One value of an axis that sets several fields together."""

    label: Title = Field(description="How points with this value are named.", examples=["2x8"])
    set: Annotated[dict[FieldPath, JsonValue], Field(min_length=1)] = Field(
        description="Values by dotted field of the spec; items of lists by number, by name, or * for all.",
        examples=[{"hardware.num_hosts": 2}],
    )


class RangeSpec(StrictModel):
    """Numbers from the first to at most the last."""

    first: float = Field(description="First value.", examples=[1])
    last: float = Field(description="No value is above it.", examples=[64])
    step: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="What is added for the next value; either this or factor.", examples=[None]
    )
    factor: Annotated[float, Field(gt=1)] | None = Field(
        default=None, description="By what the next value is multiplied.", examples=[2]
    )

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if (self.step is None) == (self.factor is None):
            raise fields_disagree("a range has either step or factor", "step", "factor")
        if self.last < self.first or (self.factor is not None and self.first <= 0):
            raise fields_disagree("a range goes up from first; with a factor, first is above 0", "first", "last")
        return self


class MachinePriceSpec(StrictModel):
    """What a host of a profile costs to run, as the user knows it."""

    price_per_host_hour: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="In the currency of the study, for one hour.", examples=[98.32]
    )
    watts_per_host: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Power that a host draws in training. Unit: watts.", examples=[10_200]
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if self.price_per_host_hour is None and self.watts_per_host is None:
            raise fields_disagree("give a price, watts, or both", "price_per_host_hour", "watts_per_host")
        return self


class StudyBase(StrictModel):
    """What every kind of study has."""

    schema_version: Literal[1] = Field(default=1, description="Version of this document.", examples=[1])
    kind: str = Field(description="Kind of study.", examples=["sweep"])
    name: Title = Field(default="study", description="How people know the study.", examples=["how many hosts"])
    prices: dict[Name, MachinePriceSpec] = Field(
        default_factory=dict,
        description="What machines cost, by hardware profile. None is built in.",
        examples=[{"dgx-h100-80g": {"price_per_host_hour": 98.32}}],
    )
    currency: Title = Field(default="USD", description="Of the prices.", examples=["USD"])


class SpecOfPoints(StrictModel):
    """The spec that points are made of."""

    spec: Annotated[dict[str, Any], PublishedAs(SpecDocument)] = Field(
        description="The spec that points are made of, as for POST /v1/solves. Fields that every point sets may be"
        " missing.",
        examples=[
            {
                "model": {
                    "batch_size_per_rank": 8192,
                    "tables": [
                        {"name": "user", "num_embeddings": 1_000_000, "embedding_dim": 64, "pooling_factor": 10.0}
                    ],
                },
                "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1},
            }
        ],
    )
    global_batch_size: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Batch of all ranks together, which every point divides by its ranks; null takes the spec's batch"
        " of a rank. Unit: samples.",
        examples=[65_536],
    )


class StudySpec(StudyBase, SpecOfPoints):
    """A study of one spec."""
