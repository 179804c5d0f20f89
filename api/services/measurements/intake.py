"""Measurements that come over HTTP: rows of benchmarks, and what jobs saw that ran plans of this service."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from api.schemas.measured_batch import BENCHMARK, JOB, MeasuredBatch
from api.schemas.measurements import (
    ComparisonDocument,
    DriftWarning,
    JobTimes,
    MeasuredRows,
    PhaseComparison,
)
from api.schemas.solve import AssumptionDocument
from api.services.measurements.job_defaults import completed
from api.specs.input.json import RejectedDocument, parse_document
from api.specs.plans.document import GivenPlan
from api.specs.request import SolveInputs
from cost_models.errors import InvalidMeasurements
from cost_models.measurements.check import check
from cost_models.measurements.json_rows import rows_from_json
from cost_models.text.number_text import counted
from cost_models.vocabulary import NUM_PHASES, Phase
from planner.domain.formats.canonical_json import digest
from planner.domain.plan.plan import Assumption
from planner.errors import Issue
from planner.output.job_feedback.observations import Comparison, Drift, Observation, ObservedPhase, compared, rows_of

_HINT = "MeasuredRow under /docs says which columns there are; shardplan measure writes rows that fit"


def is_of_job(raw: bytes) -> bool:
    """Whether a body is meant as what a job saw; anything that is no such object is not."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "rows" not in document and not document.keys().isdisjoint(_OF_JOBS)


_OF_JOBS = frozenset(JobTimes.model_fields)


def parse_rows(raw: bytes) -> MeasuredBatch:
    """Check rows of a benchmark.

    Raises
    ------
    RejectedDocument
        With the row and column of each issue, the first 50 of them.
    """
    parse_document(raw, MeasuredRows)
    try:
        rows = rows_from_json(json.loads(raw)["rows"])
    except InvalidMeasurements as error:
        issues = [  # without the values that stood there
            Issue(code="invalid-value", pointer=f"/rows{issue.pointer}", message=issue.reason, hint=_HINT)
            for issue in error.issues
        ]
        raise RejectedDocument(issues, error.num_issues) from None
    return MeasuredBatch(rows=rows, source=BENCHMARK, facts={})


def batch_of_job(job: JobTimes, inputs: SolveInputs, plan: GivenPlan) -> tuple[MeasuredBatch, ComparisonDocument]:
    """Return what a job saw as rows, and its comparison with the prediction of its plan.

    Raises
    ------
    RejectedDocument
        A rank is listed twice or is not in the plan; times are impossible, such as milliseconds for seconds; or what
        ran is neither stated nor known.
    """
    if inputs.problem.replica_groups is not None:
        hint = "send times of jobs with one group of all ranks"
        raise RejectedDocument([_issue("", "ranks of a job with sharding groups are not those of its plan", hint)])
    world_size = inputs.problem.world_size
    seconds = np.full((world_size, NUM_PHASES), np.nan)
    issues = []
    for index, rank in enumerate(job.ranks):
        if rank.rank >= world_size:
            issues.append(_issue(f"/ranks/{index}/rank", f"the plan has {world_size} ranks", "count ranks from 0"))
        elif not np.all(np.isnan(seconds[rank.rank])):
            issues.append(_issue(f"/ranks/{index}/rank", "the rank stands twice", "send the median of its steps"))
        else:
            for phase, value in rank.seconds.items():
                seconds[rank.rank, Phase.from_label(phase)] = value
    job, assumptions, missing = completed(job, profile=inputs.hardware_profile, runtime=inputs.problem.runtime)
    if issues or missing:
        raise RejectedDocument([*issues, *missing])
    stored_job = job.model_dump(mode="json")
    observation = Observation(
        seconds=seconds,
        steps=job.steps,
        task=f"job-{digest(stored_job).removeprefix('sha256:')[:16]}",
        device=job.device,
        library=stored_job["library"],
        implementation=stored_job["implementation"],
        communication=stored_job["communication"],
    )
    rows, left_out = rows_of(inputs.problem, plan.placement, observation)
    if rows.num_rows:
        try:
            check(rows)
        except InvalidMeasurements as error:
            reasons = {issue.reason: f"{issue.column}: {issue.reason}" for issue in error.issues}
            wrong = [_issue("/ranks", reason, "give the seconds of one step") for reason in reasons.values()]
            raise RejectedDocument(wrong) from None
    facts: Mapping[str, object] = {key: stored_job[key] for key in ("plan_digest", "steps", "ranks")}
    comparison = compared(inputs.problem, plan.placement, inputs.cost_model, seconds)
    return MeasuredBatch(rows=rows, source=JOB, facts=facts), _comparison(comparison, left_out, assumptions)


def _issue(where: str, message: str, hint: str) -> Issue:
    return Issue(code="invalid-value", pointer=where, message=message, hint=hint)


def _comparison(found: Comparison, left_out: tuple[str, ...], assumptions: Sequence[Assumption]) -> ComparisonDocument:
    return ComparisonDocument(
        cost_model=found.cost_model,
        coverage=None if found.drift is None else found.drift.coverage,
        phases=[_phase(one) for one in found.phases],
        drift=None if found.drift is None else _drift(found.drift, sum(one.num_ranks for one in found.phases)),
        left_out=list(left_out),
        assumptions=[AssumptionDocument.of(one) for one in assumptions],
    )


def _phase(one: ObservedPhase) -> PhaseComparison:
    return PhaseComparison.of(
        one,
        phase=one.phase.label,
        ratio=one.observed_seconds / one.predicted_seconds if one.predicted_seconds > 0 else None,
        num_outside=one.num_outside if one.num_with_interval else None,
        in_interval=one.is_inside,
        not_judged=list(one.uncovered_times),
    )


def _drift(drift: Drift, num_times: int) -> DriftWarning:
    expected = (1 - drift.coverage) * drift.num_compared
    outside = f"{drift.num_outside} of {counted(drift.num_compared, 'time')} outside their intervals"
    verdict = "more than chance explains: fit the model again" if drift.drifted else "no more than chance explains"
    rest = num_times - drift.num_compared
    uncovered_times = f"; {counted(rest, 'time')} rest on analytic prices, too, and were not judged" if rest else ""
    detail = f"{outside}, {expected:.3g} expected; {verdict}{uncovered_times}"
    return DriftWarning.of(drift, expected_outside=expected, detail=detail)
