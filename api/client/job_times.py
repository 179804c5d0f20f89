"""What the ranks of a job saw, as the document that ``POST /v1/measurements`` takes."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import NotTimed
from .verdicts import ranks_text

#: Phases that a job can time, by the contract's names.
INPUT_COMM = "input_comm"
FORWARD_COMPUTE = "forward_compute"
FORWARD_COMM = "forward_comm"
BACKWARD_COMM = "backward_comm"
BACKWARD_COMPUTE = "backward_compute"
PHASES = (INPUT_COMM, FORWARD_COMPUTE, FORWARD_COMM, BACKWARD_COMM, BACKWARD_COMPUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """What one rank saw."""

    seconds: Mapping[str, float]  # medians by phase
    num_steps: int  # that they are of
    device: str
    library: str | None
    left_out: tuple[str, ...]  # why other steps were not counted


def median_seconds(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median over steps of the seconds of each phase that every step has."""
    if not steps:
        return {}
    common = [phase for phase in PHASES if all(phase in step for step in steps)]
    return {phase: statistics.median(step[phase] for step in steps) for phase in common}


def job_times(plan_digest: str, reports: Sequence[RankReport], *, communication: str) -> dict[str, object]:
    """Return the document of a job whose rank r saw ``reports[r]``.

    Raises
    ------
    NotTimed
        A rank has no times, or ranks are of different devices or libraries, whose times a document cannot hold.
    """
    without = [rank for rank, report in enumerate(reports) if not report.num_steps or not report.seconds]
    if without:
        why = dict.fromkeys(reason for rank in without for reason in reports[rank].left_out)
        raise NotTimed([f"{ranks_text(without)}: no step was timed", *why])
    differences = [
        f"ranks have different {what} names ({', '.join(sorted(found))}); measurements are of one"
        for what in ("device", "library")
        if len(found := {str(getattr(report, what)) for report in reports}) > 1
    ]
    if differences:
        raise NotTimed(differences)
    first = reports[0]
    return {
        "plan_digest": plan_digest,
        "steps": min(report.num_steps for report in reports),
        "device": first.device,
        **({} if first.library is None else {"library": first.library}),
        "implementation": "fbgemm_tbe",  # what TorchRec looks up with, on GPUs and CPUs
        "communication": communication,
        "ranks": [{"rank": rank, "seconds": dict(report.seconds)} for rank, report in enumerate(reports)],
    }
