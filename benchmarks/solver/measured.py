"""One solve, measured: from the bytes of a spec to a verified plan."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from api.specs.parse import parse_spec
from benchmarks.machine.peak_memory import forget_peak, peak_bytes
from benchmarks.solver.stage_clock import StageClock, Timed
from planner.domain.plan.plan import PlanResult
from planner.errors import InvalidProblem
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner

REFUSED = "REFUSED"  # the spec broke a rule before anything was solved


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one solve reached, and what it took."""

    objective_seconds: float | None  # None without a plan
    lower_bound_seconds: float
    relative_gap: float | None  # objective / bound - 1; None without a plan or a bound
    seconds: float  # wall clock from spec to verified plan
    #: (seconds since the spec, objective) of every verified plan that was streamed, the last one being the answer
    improvements: tuple[tuple[float, float], ...]
    reason: str
    limit: str | None
    found_by: str
    peak_bytes: int  # of the whole process
    stage_seconds: Mapping[str, float]

    @property
    def first_plan_seconds(self) -> float | None:
        """Wall clock until the first verified plan; ``None`` without one."""
        return self.improvements[0][0] if self.improvements else None


def measure(
    spec: Mapping[str, Any],
    *,
    partitioner: str,
    time_limit_seconds: float,
    seed: int = 0,
    reproducible: bool = True,
) -> Measured:
    """Solve a spec once with a partitioner and a limit of our choice."""
    raw = json.dumps(spec).encode()
    clock = StageClock()
    improvements: list[tuple[float, float]] = []
    forget_peak()
    began = time.monotonic()

    def reported(result: PlanResult) -> None:
        if result.plan is not None:
            improvements.append((time.monotonic() - began, result.plan.evaluation.objective_seconds))

    with clock.around_pipeline():
        try:
            with clock.within("parse"):
                request = parse_spec(raw)
        except InvalidProblem:
            return _without_plan(REFUSED, None, 0.0, time.monotonic() - began, clock)
        # Reading the spec is part of the time that is judged, so that it counts towards the limit.
        left_seconds = max(time_limit_seconds - (time.monotonic() - began), 1e-3)
        limits: SolveLimits = replace(
            request.limits,
            time_limit_seconds=left_seconds,
            work_limit_seconds=time_limit_seconds,
            seed=seed,
            reproducible=reproducible,
        )
        result = plan(
            request.problem,
            cost_model=request.cost_model,
            partitioner=Timed(make_partitioner(partitioner), clock, "search"),
            limits=limits,
            on_result=reported,
        )
    seconds = time.monotonic() - began
    if result.plan is None:
        return _without_plan(result.reason, result.limit, result.lower_bound_seconds, seconds, clock)
    reported(result)
    return Measured(
        objective_seconds=result.plan.evaluation.objective_seconds,
        lower_bound_seconds=result.lower_bound_seconds,
        relative_gap=result.plan.relative_gap,
        seconds=seconds,
        improvements=tuple(improvements),
        reason=result.reason,
        limit=result.limit,
        found_by=result.plan.partitioner,
        peak_bytes=peak_bytes(),
        stage_seconds=dict(clock.seconds),
    )


def _without_plan(reason: str, limit: str | None, bound: float, seconds: float, clock: StageClock) -> Measured:
    return Measured(
        objective_seconds=None,
        lower_bound_seconds=bound,
        relative_gap=None,
        seconds=seconds,
        improvements=(),
        reason=reason,
        limit=limit,
        found_by="",
        peak_bytes=peak_bytes(),
        stage_seconds=dict(clock.seconds),
    )
