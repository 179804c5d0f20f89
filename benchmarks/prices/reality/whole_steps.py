"""Whole training steps that others published, next to those that the product predicts.

MLPerf's DLRM-DCNv2 is predicted under the plan that HugeCTR ran: its sparse step by the product's cost model, dense
compute and its all-reduce by the layers of the model (``whole_step`` of a plan). One number is of HugeCTR itself: what
its backward kernels take of FBGEMM's, which the product prices.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from benchmarks.prices.reality import synthetic_models
from benchmarks.prices.reality.cells import UNREADABLE
from benchmarks.prices.reality.mlperf.hugectr_planner import Holdings
from benchmarks.prices.reality.mlperf.model import Job, Steps, backward_share, evaluated, steps_of
from benchmarks.prices.reality.mlperf.runs import Run, runs
from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tables import lines_with

GROUP = "whole step"
ODD_GROUP = "whole step, odd submissions"
#: The sparse step alone next to the whole measured step, which it must not exceed.
SPARSE_GROUP = "sparse step of a whole step"


def rows(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield the whole steps of the tables of a folder, predicted, and those that are not."""
    for run in runs(folder):
        if isinstance(run, LeftOutRow):
            yield run
        else:
            try:
                yield from list(_rows_of(run))
            except UNREADABLE as error:
                yield run.line.left_out(f"not readable: {error}")
    yield from synthetic_models.rows(folder)
    for line in lines_with(folder, synthetic_models.COLUMNS):
        if not synthetic_models.is_synthetic(line):
            yield line.left_out(_why_not(line.fields["model"]))


def _rows_of(run: Run) -> Iterator[PredictedRow | LeftOutRow]:
    plan = run.plan()
    if plan is None:
        yield run.line.left_out("HugeCTR's planner, re-made, finds no plan")
        return
    steps = _steps(run.job, plan)
    how = "the printed plan" if run.printed is not None else f"the plan of {run.settings.sharding_plan}, made again"
    of_platform = (GROUP, f"{GROUP}: MLPerf {run.gpu}", f"{GROUP}: MLPerf {run.platform}")
    for groups, subject, predicted in (
        ((ODD_GROUP,) if run.is_odd else of_platform, "DLRM-DCNv2 step", steps.whole),
        ((SPARSE_GROUP,), "sparse step of DLRM-DCNv2 next to the whole measured step", steps.sparse),
    ):
        yield PredictedRow(
            groups=groups,
            file=run.line.file,
            line=run.line.number,
            platform=run.platform,
            subject=f"{subject}, batch {run.job.global_batch}, {how} ({run.round})",
            measured_seconds=run.step_seconds,
            predicted_seconds=predicted,
        )


@cache
def _steps(job: Job, plan: Holdings) -> Steps:
    return steps_of(evaluated(job, plan), backward_share())


def _why_not(model: str) -> str:
    """Return why a published step of another model is not predicted."""
    if model.startswith("torchrec"):
        return "only the ratio of two runs is stated, of tables that are not all listed"
    return "its dense part, or all of its tables, are not published"
