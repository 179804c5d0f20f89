"""What is asked of a sweep: a spec for every combination of values."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from api.schemas.base import StrictModel, fields_disagree
from api.schemas.studies.base import MAX_POINTS, FieldPath, RangeSpec, StudySpec, VariantSpec

MAX_AXES = 6
#: Figures of points that fronts are drawn over.
FigureName = Literal[
    "samples_per_second",
    "step_seconds",
    "requests_per_second",
    "p99_seconds",
    "fullest_rank_fraction",
    "num_hosts",
    "num_ranks",
    "global_batch_size",
    "price_per_hour",
    "price_per_billion_samples",
    "watts",
    "joules_per_thousand_samples",
    "checkpoint_write_bytes_per_second",
    "checkpoint_stored_bytes",
]


class AxisSpec(StrictModel):
    """What is varied: a field of the spec over values or a range, or several fields together."""

    field: FieldPath | None = Field(
        default=None,
        description="Dotted field of the spec, or global_batch_size: the batch of all ranks together, which each point"
        " divides by its ranks. null with variants.",
        examples=["hardware.num_hosts"],
    )
    values: Annotated[list[JsonValue], Field(min_length=1, max_length=MAX_POINTS)] | None = Field(
        default=None, description="Values of the field.", examples=[[1, 2, 4, 8]]
    )
    range: RangeSpec | None = Field(default=None, description="A range of values, in their place.", examples=[None])
    variants: Annotated[list[VariantSpec], Field(min_length=1, max_length=MAX_POINTS)] | None = Field(
        default=None, description="Several fields together, in place of field and values.", examples=[None]
    )

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        given = [name for name in ("values", "range", "variants") if getattr(self, name) is not None]
        if len(given) != 1:
            raise fields_disagree("give one of values, range and variants", *(given or ("values",)))
        if (self.field is None) != (self.variants is not None):
            raise fields_disagree("values and a range are of a field; variants name their own fields", "field")
        return self


class SweepSpec(StudySpec):
    """Plans a spec for every combination of values."""

    kind: Literal["sweep"] = Field(description="Kind of study.", examples=["sweep"])
    axes: Annotated[list[AxisSpec], Field(min_length=1, max_length=MAX_AXES)] = Field(
        description="What is varied. Points along the last axis are planned one after the other, each from its"
        " neighbour's plan.",
        examples=[[{"field": "hardware.num_hosts", "values": [1, 2, 4]}]],
    )
    front: Annotated[list[FigureName], Field(min_length=1, max_length=4)] = Field(
        default=["samples_per_second", "num_hosts"],
        description="Figures of the Pareto front.",
        examples=[["samples_per_second", "num_hosts"]],
    )

    prune: bool = Field(
        default=True,
        description="End the solve of a point as soon as its bound shows that another plan is at least as good in every"
        " figure of the front.",
        examples=[True],
    )

    @field_validator("front")
    @classmethod
    def _names_each_once(cls, value: list[FigureName]) -> list[FigureName]:
        if len(set(value)) < len(value):
            raise fields_disagree("a figure stands twice", "front")
        return value
