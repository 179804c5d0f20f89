"""What memory costs in step time: the fullest rank as a second objective, next to the margin of memory as one knob.

    python benchmarks/solver/ordered_objectives.py SPEC.json [--tolerances 0 0.01 0.02 0.05 0.1]
        [--margins 0.3 0.45 0.6] [--time-limit 20] [--json FILE]

For each tolerance of ``[step_time, fullest_rank]`` a line: the step, the fullest rank with its bound, and the
milliseconds of a step for each gigabyte that the fullest rank gives back, compared with the plan without a second
objective. For each margin (``constraints.reserved_hbm_fraction``) the same of the plan under that margin. ``--json``
also has every plan that the searches found, with what each of them proves.
"""

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from planner.domain.plan.plan import Plan
from planner.domain.problem.goals import FULLEST_RANK, STEP_TIME, Goal, Tolerance
from planner.pipeline import plan
from planner.pricing.memory.ledger import capacity_bytes
from planner.verification.goal_values import goal_values

_GIGABYTE = 1e9
_BY_GOAL = (Goal(name=STEP_TIME), Goal(name=FULLEST_RANK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One plan: how it was asked for, its step, and its fullest rank."""

    asked: str
    step_seconds: float
    step_bound_seconds: float
    fullest_bytes: float
    fullest_bound_bytes: float | None  # of all plans within the tolerance
    found: tuple[dict[str, Any], ...] = ()  # plans of the searches


def planned(request: SolveRequest, time_limit_seconds: float, **changes: Any) -> Plan:
    """Plan a changed problem; raises ``SystemExit`` where no plan is found."""
    result = plan(
        replace(request.problem, **changes),
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=replace(request.limits, time_limit_seconds=time_limit_seconds),
    )
    if result.plan is None:
        raise SystemExit(f"no plan: {result.detail}")
    return result.plan


def points(
    request: SolveRequest, tolerances: list[float], margins: list[float], time_limit_seconds: float
) -> Iterator[Point]:
    """Yield the plan of the step alone, those of tolerances, and those of margins."""
    problem = request.problem
    capacity = float(capacity_bytes(problem)[:, problem.cluster.device_tier].max())

    def fullest_bytes(found: Plan) -> float:
        values = goal_values(replace(problem, goals=_BY_GOAL), found.placement, found.evaluation, None)
        return values[FULLEST_RANK] * capacity

    def point(asked: str, found: Plan) -> Point:
        fullest = found.goals[-1] if found.goals else None
        return Point(
            asked=asked,
            step_seconds=found.evaluation.objective_seconds,
            step_bound_seconds=found.lower_bound_seconds,
            fullest_bytes=fullest_bytes(found),
            fullest_bound_bytes=None if fullest is None else fullest.lower_bound * capacity,
            found=() if fullest is None else tuple(asdict(one) for one in fullest.points),
        )

    yield point("step_time alone", planned(request, time_limit_seconds / 2))
    for tolerance in tolerances:
        goals = (_BY_GOAL[0], replace(_BY_GOAL[1], tolerance=Tolerance(relative=tolerance)))
        yield point(f"tolerance {tolerance:g}", planned(request, time_limit_seconds, goals=goals))
    for margin in margins:
        rules = replace(problem.reservation, hbm_fraction=margin)
        yield point(f"margin {margin:g}", planned(request, time_limit_seconds / 2, reservation=rules))


def line(point: Point, alone: Point) -> str:
    """Return one line of the table."""
    freed = (alone.fullest_bytes - point.fullest_bytes) / _GIGABYTE
    more = (point.step_seconds - alone.step_seconds) * 1e3
    price = f"{more / freed:9.3f}" if freed > 0 else "        -"
    bound = "       -" if point.fullest_bound_bytes is None else f"{point.fullest_bound_bytes / _GIGABYTE:8.3f}"
    return (
        f"{point.asked:<18} {point.step_seconds * 1e3:10.3f} {point.step_bound_seconds * 1e3:10.3f}"
        f" {point.fullest_bytes / _GIGABYTE:8.3f} {bound} {price}"
    )


def read_spec(path: Path) -> Mapping[str, Any]:
    """Read a spec, compressed or not."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: Mapping[str, Any] = json.loads(raw)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Plan, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--tolerances", type=float, nargs="*", default=[0.0, 0.01, 0.02, 0.05, 0.1])
    parser.add_argument("--margins", type=float, nargs="*", default=[0.3, 0.45, 0.6])
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    request = parse_spec(json.dumps(read_spec(options.spec)).encode())
    print(f"{'':<18} {'step ms':>10} {'bound ms':>10} {'full GB':>8} {'bound GB':>8} {'ms per GB':>9}")
    found: list[Point] = []
    for one in points(request, options.tolerances, options.margins, options.time_limit):
        found.append(one)
        print(line(one, found[0]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
