"""The first plan over HTTP: how long after a spec was sent the service streams a verified plan, and why so long.

    python benchmarks/service/first_plan.py [--runs 10] [--tables 1000] [--ranks 128] [--fill 0.8] [--time-limit 10]

Starts ``shardplan serve`` with an empty data folder and sends specs of the roofline family, objective
``step_time``, each under a name of its own, so that every solve is new to the service. The first one is sent as
soon as the service says that it is ready (the cold run), the others each after the one before has ended (warm
runs). Seconds are from the first byte of the request until:

    accepted   the answer 202: the spec was parsed, checked and stored
    visible    progress states the objective of a first verified plan; until then it is asked for all the time
    fetched    the plan of the ended solve has arrived

The same spec is planned in this process, too, up to its first verified plan, for the seconds of each stage.
Exits with 1 where the median of the warm runs is above the target.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from api.specs.parse import parse_spec
from benchmarks.inputs.instances import meta_family
from benchmarks.service.service import NotServed, Service, answer_of, running_service
from benchmarks.solver.stage_clock import StageClock
from planner.domain.plan.plan import PlanResult
from planner.pipeline import plan
from planner.solver.partitioners.kernels.warm_up import warm

TARGET_SECONDS = 1.0  # visible, warm, on two cores that do nothing else
#: What comes before a first plan, and is listed apart; "finish" is its naming, scoring and verifying.
STAGES = ("parse", "enumerate", "price", "prune", "bound", "first plan", "finish")
_GRACE_SECONDS = 60.0
_LOOK_SECONDS = 0.02  # between two looks at a running solve; each takes the service some milliseconds
_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Seconds from the first byte of a request."""

    accepted_seconds: float
    visible_seconds: float
    fetched_seconds: float


class _Found(Exception):
    """A first plan was found; the rest of the solve is not wanted."""


def stages_to_first_plan(spec: Mapping[str, Any]) -> dict[str, float]:
    """Plan in this process up to the first verified plan; returns the seconds of each stage, and their sum.

    Raises
    ------
    NotServed
        There is no plan.
    """
    raw = json.dumps(spec).encode()
    clock = StageClock()

    def stop(_: PlanResult) -> None:
        raise _Found

    began = time.monotonic()
    with clock.around_pipeline():
        with clock.within("parse"):
            request = parse_spec(raw)
        try:
            plan(
                request.problem,
                cost_model=request.cost_model,
                partitioner=request.partitioner,
                limits=request.limits,
                on_result=stop,
            )
        except _Found:
            return {**{stage: clock.seconds[stage] for stage in STAGES}, "in all": time.monotonic() - began}
    raise NotServed("the spec has no plan")


def reach(service: Service, spec: Mapping[str, Any]) -> Reached:
    """Send a spec, look until there is a first plan, fetch the last one.

    Raises
    ------
    NotServed
        The spec was refused, or has no plan.
    """
    body = json.dumps(spec).encode()
    began = time.monotonic()
    solve: dict[str, Any] = answer_of(service.client.post("/v1/solves", content=body, headers=_HEADERS))
    accepted = time.monotonic() - began
    address = f"/v1/solves/{solve['id']}"
    give_up = began + spec["solver"]["time_limit_seconds"] + _GRACE_SECONDS
    while solve["progress"] is None:
        if time.monotonic() > give_up:
            raise NotServed(f"no plan {_GRACE_SECONDS:g} s after the time limit: the solve is {solve['state']}")
        if solve["state"] not in ("queued", "running"):
            raise NotServed(f"the solve {solve['state']} without a plan: {solve['error'] or solve['result']}")
        time.sleep(_LOOK_SECONDS)
        solve = answer_of(service.client.get(address))
    visible = time.monotonic() - began
    while solve["state"] in ("queued", "running"):
        solve = answer_of(service.client.get(address, params={"wait": 30}))
    answer_of(service.client.get(solve["result"]["plan_url"]))
    return Reached(accepted_seconds=accepted, visible_seconds=visible, fetched_seconds=time.monotonic() - began)


def line(name: str, reached: Reached) -> str:
    """Return a run as a row of the table."""
    seconds = (reached.accepted_seconds, reached.visible_seconds, reached.fetched_seconds)
    return f"{name:<10}" + "".join(f"{value:>11.3f}" for value in seconds)


def summary(warm_runs: Sequence[Reached]) -> list[str]:
    """Return median and worst of the warm runs, and whether the target is reached."""
    middle = Reached(
        accepted_seconds=median(run.accepted_seconds for run in warm_runs),
        visible_seconds=median(run.visible_seconds for run in warm_runs),
        fetched_seconds=median(run.fetched_seconds for run in warm_runs),
    )
    worst = Reached(
        accepted_seconds=max(run.accepted_seconds for run in warm_runs),
        visible_seconds=max(run.visible_seconds for run in warm_runs),
        fetched_seconds=max(run.fetched_seconds for run in warm_runs),
    )
    verdict = "reached" if middle.visible_seconds <= TARGET_SECONDS else "MISSED"
    return [line("median", middle), line("worst", worst), f"target {TARGET_SECONDS:g} s to visible: {verdict}"]


def stage_lines(found: Sequence[Mapping[str, float]]) -> list[str]:
    """Return medians by stage as rows of a table."""
    return [
        "in this process, up to the first verified plan, s (medians)",
        *(f"  {stage:<12}{median(seconds[stage] for seconds in found):>7.3f}" for stage in (*STAGES, "in all")),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    given = _parser().parse_args(arguments)
    spec = meta_family(
        num_tables=given.tables,
        num_ranks=given.ranks,
        fill=given.fill,
        seed=given.seed,
        time_limit_seconds=given.time_limit,
    )
    warm()  # compiling is no part of any solve
    try:
        print(f"{spec['name']}, {len(json.dumps(spec)):,} bytes")
        stages_to_first_plan(spec)  # loads what is loaded once
        print(*stage_lines([stages_to_first_plan(spec) for _ in range(given.runs)]), sep="\n", flush=True)
        with running_service() as service:
            print(f"\nover HTTP, s; the service was ready after {service.start_seconds:.2f} s")
            print(f"{'run':<10}{'accepted':>11}{'visible':>11}{'fetched':>11}")
            print(line("cold", reach(service, spec | {"name": "cold"})), flush=True)
            warm_runs = []
            for number in range(1, given.runs + 1):
                warm_runs.append(reach(service, spec | {"name": f"warm-{number}"}))
                print(line(f"warm {number}", warm_runs[-1]), flush=True)
    except NotServed as error:
        print(f"nothing to measure: {error}", file=sys.stderr)
        return 2
    print(*summary(warm_runs), sep="\n")
    return int(median(run.visible_seconds for run in warm_runs) > TARGET_SECONDS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="warm runs")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--fill", type=float, default=0.8, help="share of usable HBM")
    parser.add_argument("--seed", type=int, default=0, help="of the instance")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds per solve")
    return parser


if __name__ == "__main__":
    sys.exit(main())
