"""What the service answers about studies."""

from typing import Any, Literal

from pydantic import Field

from api.schemas.base import Document, Moment
from api.schemas.studies.sweep import FigureName
from api.store.studies.studies import PointRecord, StudyRecord


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
