"""Measurements as documents: rows of benchmarks, or what a job saw that ran a plan."""

from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from api.schemas.base import Digest, Document, Moment, StrictModel
from api.schemas.solve import AssumptionDocument
from cost_models.measurements.check import MAX_ROWS
from cost_models.measurements.schema import COLUMNS, Column
from cost_models.vocabulary import STEP_PHASES
from planner.domain.problem.cluster import MAX_RANKS

#: As in files of measurements: no text can be a formula of a spreadsheet.
TEXT_PATTERN = r"^[A-Za-z0-9_]([ -~]{0,78}[!-~])?$"
PhaseName = Literal["input_comm", "forward_compute", "forward_comm", "backward_comm", "backward_compute", "prefetch"]
assert set(PhaseName.__args__) == {phase.label for phase in STEP_PHASES}  # type: ignore[attr-defined]
Text = Annotated[str, Field(min_length=1, max_length=80, pattern=TEXT_PATTERN)]
Seconds = Annotated[float, Field(ge=0, le=600)]

_TYPES: dict[str, Any] = {
    "text": Annotated[str, Field(max_length=80)],
    "count": Annotated[int, Field(ge=-1, le=2**53)],
    "number": Annotated[float, Field(ge=-1e300, le=1e300)],
}


def _field(column: Column) -> tuple[Any, Any]:
    needed = f"Needed for {', '.join(column.required_by)}." if column.required_by else "Where it is known."
    return (_TYPES[column.type] | None, Field(default=None, description=needed))


#: One measured row; what its columns mean stands in ``cost_models/measurements/schema.py``.
MeasuredRow: type[StrictModel] = create_model(  # type: ignore[call-overload]  # fields by name are not typed
    "MeasuredRow",
    __base__=StrictModel,
    __doc__="One shard of a launch, one rank of a collective, or one copy, with the seconds that it took.",
    **{column.name: _field(column) for column in COLUMNS},
)


class MeasuredRows(StrictModel):
    """Rows that a benchmark measured, as ``shardplan measure`` writes them."""

    rows: Annotated[list[MeasuredRow], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)] = Field(
        description="Columns as in files of measurements; null or left out where they do not apply."
    )


class RankTimes(StrictModel):
    """What one rank saw."""

    rank: Annotated[int, Field(ge=0, lt=MAX_RANKS)] = Field(description="Rank.", examples=[0])
    seconds: Annotated[dict[PhaseName, Seconds], Field(min_length=1)] = Field(
        description="Median seconds of a step by phase; phases that were not timed are left out.",
        examples=[{"forward_compute": 0.004, "backward_compute": 0.009}],
    )


class JobTimes(StrictModel):
    """What a job saw that ran a plan."""

    plan_digest: Digest = Field(description="The plan that it ran.")
    steps: Annotated[int, Field(ge=1, le=10**9)] = Field(description="Steps that were timed.", examples=[1000])
    device: Text = Field(description="The device of its ranks.", examples=["NVIDIA H100 80GB HBM3"])
    library: Text | None = Field(
        default=None, description="What ran the lookups; null: training-job.", examples=["fbgemm_gpu 1.8.0"]
    )
    implementation: Text | None = Field(
        default=None,
        description="Its kernel, as in rows of benchmarks that are fitted together with it: fbgemm_tbe, triton_tbe, "
        "embedding_bag. null: fbgemm_tbe of plans for torchrec; needed of others where lookups were timed.",
        examples=["fbgemm_tbe"],
    )
    communication: Text | None = Field(
        default=None,
        description="What ran the collectives: nccl, gloo. null: nccl on GPUs and gloo on CPUs, by the device or the "
        "plan's hardware profile; needed if neither says so and collectives were timed.",
        examples=["nccl"],
    )
    ranks: Annotated[list[RankTimes], Field(min_length=1, max_length=MAX_RANKS, fail_fast=True)] = Field(
        description="Ranks, each once; collectives are learned from where all of them are there."
    )


class PhaseComparison(Document):
    """One phase of a job next to the prediction of its plan."""

    phase: str = Field(description="Phase.", examples=["forward_compute"])
    observed_seconds: float = Field(description="Of the slowest rank that was timed. Unit: seconds.")
    predicted_seconds: float = Field(description="Of the slowest of the same ranks. Unit: seconds.")
    ratio: float | None = Field(description="Observed to predicted; null where nothing was predicted.")
    num_ranks: int = Field(description="Ranks that were compared.")
    num_outside: int | None = Field(
        description="Ranks whose time lies outside its interval; null of a model without intervals."
    )
    in_interval: bool | None = Field(description="Whether the slowest rank's time lies in its interval.")
    not_judged: list[str] = Field(
        default_factory=list,
        description="Ranks whose time is compared in ratio alone, since it has no interval, and why; empty of a model"
        " without intervals.",
    )


class DriftWarning(Document):
    """Whether more times lie outside their intervals than chance explains."""

    drifted: bool = Field(description="Whether the model should be fitted again.")
    num_compared: int = Field(description="Times of ranks in phases.")
    num_outside: int = Field(description="Those outside their interval.")
    expected_outside: float = Field(description="Number that the coverage of the model lets expect.")
    probability: float = Field(
        description="Of as many outside or more, if each lay outside by itself with one minus the coverage"
        " (binomial). Ranks of one step are not quite independent, so the threshold is low: 0.001."
    )
    detail: str = Field(description="In words.")


class ComparisonDocument(Document):
    """The times of a job next to the prediction of its plan."""

    cost_model: str = Field(description="What predicted them.", examples=["roofline@2"])
    coverage: float | None = Field(description="Probability of each interval; null of a model without.")
    phases: list[PhaseComparison]
    drift: DriftWarning | None = Field(description="null of a model without intervals.")
    left_out: list[str] = Field(description="What no rows could be made of, and why.")
    assumptions: list[AssumptionDocument] = Field(
        default_factory=list, description="Fields of the job that were left out, what was taken for them, and why."
    )


class MeasurementsSummary(Document):
    """A batch of measurements, in short."""

    measurements_digest: str = Field(description="What measurements of a fit name.")
    measurements_url: str = Field(description="Where the rows are.")
    source: str = Field(description="benchmark, or job.", examples=["benchmark"])
    device: str = Field(description="Of all rows; empty where they are of several.")
    num_rows: int = Field(description="Unit: rows.")
    plan_digest: str | None = Field(description="Of a job: the plan that it ran.")
    comparison: ComparisonDocument | None = Field(description="Of a job.")
    created_at: Moment = Field(description="When it was stored.")


class MeasurementsPage(Document):
    """A page of batches, by digest."""

    measurements: list[MeasurementsSummary]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class MeasurementsDocument(Document):
    """A batch with its rows."""

    schema_version: int = Field(description="Version of this document.", examples=[1])
    source: str = Field(description="benchmark, or job.", examples=["benchmark"])
    plan_digest: str | None = Field(default=None, description="Of a job: the plan that it ran.")
    steps: int | None = Field(default=None, description="Of a job: steps that were timed.")
    ranks: list[RankTimes] | None = Field(default=None, description="Of a job: the seconds as they were sent.")
    rows: list[MeasuredRow]
