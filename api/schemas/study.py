"""What is asked of a study, and what the service answers about studies."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from api.schemas.base import Document, Moment, Name, StrictModel, Title, fields_disagree
from api.store.studies.studies import PointRecord, StudyRecord

MAX_POINTS = 2_000
MAX_AXES = 6
FIELD_PATTERN = r"^[A-Za-z0-9_*][^\s=]{0,199}$"
FieldPath = Annotated[str, Field(pattern=FIELD_PATTERN)]
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

    spec: dict[str, Any] = Field(
        description="The spec that points are made of, as for POST /v1/solves.",
        examples=[{"model": {}, "hardware": {}}],
    )
    global_batch_size: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Batch of all ranks together, which every point divides by its ranks; null takes the spec's batch"
        " of a rank. Unit: samples.",
        examples=[65_536],
    )


class StudySpec(StudyBase, SpecOfPoints):
    """A study of one spec."""


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


class PointFigures(Document):
    """What a plan of a point, or its bound, is worth; null where not known."""

    step_seconds: float | None = Field(
        default=None,
        description="Of the whole step if the spec times its dense part, else of embeddings. Unit: seconds.",
    )
    is_whole_step: bool = Field(default=False, description="Whether the step has its dense part.")
    samples_per_second: float | None = Field(
        default=None, description="Of all ranks together. Unit: samples per second."
    )
    requests_per_second: float | None = Field(
        default=None, description="Sustained, of serving. Unit: requests per second."
    )
    p99_seconds: float | None = Field(
        default=None, description="99 of 100 requests are answered within it, at the rate of the spec. Unit: seconds."
    )
    fullest_rank_fraction: float | None = Field(default=None, description="Used share of the fullest rank.")
    num_hosts: int = Field(description="Unit: hosts.")
    num_ranks: int = Field(description="Of the whole job. Unit: ranks.")
    global_batch_size: int | None = Field(default=None, description="Of all ranks together. Unit: samples.")
    price_per_hour: float | None = Field(default=None, description="Of all hosts, in the study's currency.")
    price_per_billion_samples: float | None = Field(default=None, description="In the study's currency.")
    watts: float | None = Field(default=None, description="Of all hosts. Unit: watts.")
    joules_per_thousand_samples: float | None = Field(default=None, description="Unit: joules.")
    checkpoint_write_bytes_per_second: float | None = Field(
        default=None, description="What all hosts write, on average. Unit: bytes per second."
    )
    checkpoint_stored_bytes: float | None = Field(
        default=None, description="What a restore needs the store to hold, at most. Unit: bytes."
    )


class PointIssueDocument(Document):
    """Why a point has no plan."""

    pointer: str = Field(default="", description="JSON pointer into the point's spec.")
    message: str
    hint: str = ""


PointState = Literal["waiting", "planned", "compared", "infeasible", "no_plan", "invalid", "failed", "cancelled"]
Standing = Literal["front", "dominated", "undecided"]


class PointDocument(Document):
    """One point of a study: a solve of a changed spec, or a comparison of plans."""

    key: str = Field(description="Name of the point in its study.", examples=["2x8/8192"])
    labels: dict[str, str] = Field(description="Value of every axis, as text.", examples=[{"hardware.num_hosts": "2"}])
    state: PointState = Field(description="How far the point is.", examples=["planned"])
    solve_id: str | None = Field(default=None, description="The solve of the point; null before it is submitted.")
    plan_digest: str | None = Field(default=None, description="The plan; null where there is none.")
    objective_seconds: float | None = Field(default=None, description="Of the plan. Unit: seconds.")
    lower_bound_seconds: float | None = Field(
        default=None, description="No plan of the point is better. Unit: seconds."
    )
    relative_gap: float | None = Field(default=None, description="Between the two.")
    limit: str | None = Field(default=None, description="What ended the solve; cutoff: the study needed no more.")
    figures: PointFigures | None = Field(default=None, description="What the plan is worth.")
    at_best: PointFigures | None = Field(default=None, description="What no plan of the point is better than.")
    issues: list[PointIssueDocument] = Field(default_factory=list, description="Why there is no plan.")


class FrontPointDocument(Document):
    """Where a point stands against all others."""

    key: str = Field(description="The point.")
    standing: Standing = Field(
        description="front: no plan of another point is better; dominated: proven, whatever plan the point may have;"
        " undecided: its plan is dominated, but its bound leaves room for a plan that is not."
    )
    dominated_by: str | None = Field(
        default=None, description="A point whose plan is at least as good in every figure."
    )
    is_proven: bool = Field(
        description="Whether longer searches could not change the standing; of a point of the front: no bound of"
        " another point reaches it."
    )


class FrontDocument(Document):
    """The Pareto front of a study, over plans that were found."""

    figures: list[FigureName] = Field(description="What the front is over.")
    points: list[FrontPointDocument] = Field(description="Every point with a plan, those of the front first.")


StudyState = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class StudyProgressDocument(Document):
    """How far a study is."""

    num_points: int = Field(description="Points that are known so far. Unit: points.")
    num_ended: int = Field(description="Points that have ended. Unit: points.")


class StudyErrorDocument(Document):
    """Why a study failed."""

    code: str
    message: str
    hint: str = ""


class StudyDocument(Document):
    """One study."""

    id: str = Field(description="Id of the study.", examples=["019aa1b2c3d4e5f60718293a4b5c"])
    kind: str = Field(description="Kind of study.", examples=["sweep"])
    name: str
    state: StudyState = Field(description="queued, running, succeeded, failed or cancelled.")
    created_at: Moment = Field(description="When it was asked for.")
    started_at: Moment | None = Field(default=None, description="When its first point was submitted.")
    ended_at: Moment | None = Field(default=None, description="When it ended.")
    progress: StudyProgressDocument
    answer: dict[str, Any] | None = Field(
        default=None, description="What the study found, by its kind; null until it ends."
    )
    error: StudyErrorDocument | None = Field(default=None, description="Why it failed.")


class StudyPage(Document):
    """A page of studies, newest first, without their answers."""

    studies: list[StudyDocument]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class PointList(Document):
    """All points of a study, in the order in which they are asked for."""

    points: list[PointDocument]


def study_document(record: StudyRecord) -> StudyDocument:
    """Return the document of a study."""
    return StudyDocument.of(record, progress={"num_points": record.num_points, "num_ended": record.num_ended})


def point_document(record: PointRecord) -> PointDocument:
    """Return the document of a point."""
    outcome = {key: value for key, value in (record.outcome or {"state": "waiting"}).items() if key != "compared"}
    return PointDocument.model_validate(
        {"key": record.key, "labels": record.labels, "solve_id": record.solve_id, **outcome}
    )
