"""Steps under plans of ours next to those under HugeCTR's plans, both predicted, of every configuration that ran."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.prices.reality.mlperf.model import Job, backward_share, evaluated, planned_by_us, steps_of
from benchmarks.prices.reality.mlperf.runs import Run, runs
from cost_models.errors import CostModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One configuration under both plans."""

    platform: str
    global_batch: int
    hugectr_seconds: float  # the least of the plans that were submitted
    our_seconds: float


def compared(folder: Path, *, time_limit_seconds: float) -> Iterator[Compared]:
    """Plan every configuration of a folder; those without a plan of either kind are passed over."""
    submitted: dict[tuple[str, Job], list[float]] = {}
    share = backward_share()
    for run in runs(folder):
        if isinstance(run, Run) and (plan := run.plan()) is not None:
            submitted.setdefault((run.platform, run.job), []).append(steps_of(evaluated(run.job, plan), share).whole)
    for (platform, job), seconds in submitted.items():
        try:
            ours = planned_by_us(job, time_limit_seconds=time_limit_seconds)
        except CostModelError:  # a number that another scheme needs
            continue
        if ours is not None:
            yield Compared(
                platform=platform,
                global_batch=job.global_batch,
                hugectr_seconds=min(seconds),
                our_seconds=steps_of(ours, share).whole,
            )
