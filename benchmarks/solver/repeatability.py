"""Reproducible mode, shown: the same spec many times under changing load, and every plan compared byte by byte.

    python benchmarks/solver/repeatability.py [--runs 20] [--spec SPEC.json] [--partitioner NAME] [--work-limit 10]
        [--time-limit 60] [--by command service] [--price-runs 3]

Every run is a new process: ``shardplan plan`` and ``shardplan serve`` by turns. The first run is on a machine
that does nothing else, as far as this script can see to it; under every other one the number of busy processes
goes round 0, 1, 2 and 4, from another one each time. Compared is the canonical plan document without the fields of
``provenance`` that depend on how long something took: ``solver_seconds``, ``found_seconds`` and ``late_gain_seconds``.
So placement, objective, bound, gap, loads of all ranks, reason and limit count, to the last bit. Exits with 1 where two
plans differ.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.inputs.instances import meta_family
from benchmarks.machine.busy import BusyProcesses, changing_load
from benchmarks.service.service import SHARDPLAN, NotServed, answer_of, environment, running_service
from planner.domain.formats.canonical_json import canonical_bytes
from planner.solver.partitioners.kernels.warm_up import warm
from planner.solver.partitioners.registry import partitioner_names

Document = dict[str, Any]

LEVELS = (0, 1, 2, 4)  # busy processes
LEAST_SECONDS, MOST_SECONDS = 0.3, 2.0  # at each number of them
#: Fields of the provenance that depend on how long something took.
_OF_THE_CLOCK = ("solver_seconds", "found_seconds", "late_gain_seconds")
_CLOCK = "time"  # limit of a plan that the clock cut
_MILLISECONDS = 1e3


class NoPlan(Exception):
    """A run ended without a plan; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run."""

    by: str
    levels: tuple[int, ...]  # busy processes, in order
    seconds: float  # from the start of the process to the plan
    plan: Document

    @property
    def digest(self) -> str:
        """SHA-256 of the compared bytes."""
        return hashlib.sha256(compared_bytes(self.plan)).hexdigest()

    @property
    def is_cut_by_the_clock(self) -> bool:
        """Whether the plan says that another one may come out next time."""
        return bool(self.plan["termination"]["limit"] == _CLOCK)


def compared_bytes(plan: Mapping[str, Any]) -> bytes:
    """Return the canonical bytes of a plan document without the seconds that its solve took."""
    provenance = {key: value for key, value in plan["provenance"].items() if key not in _OF_THE_CLOCK}
    return canonical_bytes({**plan, "provenance": provenance})


def first_difference(first: object, second: object, pointer: str = "") -> str | None:
    """Return the JSON pointer of the first place where two documents differ, in the order of the keys."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in sorted({*first, *second}):
            if key not in first or key not in second:
                return f"{pointer}/{key}"
            if (found := first_difference(first[key], second[key], f"{pointer}/{key}")) is not None:
                return found
        return None
    if isinstance(first, list) and isinstance(second, list):
        for index, (one, other) in enumerate(zip(first, second, strict=False)):
            if (found := first_difference(one, other, f"{pointer}/{index}")) is not None:
                return found
        return None if len(first) == len(second) else pointer
    return None if canonical_bytes(first) == canonical_bytes(second) else pointer


def plan_by_command(spec: Path) -> Document:
    """Plan with ``shardplan plan``."""
    command = [*SHARDPLAN, "plan", str(spec), "--quiet"]
    done = subprocess.run(command, capture_output=True, env=environment(), check=False)
    if done.returncode:
        raise NoPlan(done.stderr.decode(errors="replace"))
    plan: Document = json.loads(done.stdout)
    return plan


def plan_by_service(spec: Path) -> Document:
    """Plan with a service that is started for this one plan."""
    headers = {"Content-Type": "application/json"}
    with running_service() as service:
        solve: Document = answer_of(service.client.post("/v1/solves", content=spec.read_bytes(), headers=headers))
        while solve["state"] in ("queued", "running"):
            solve = answer_of(service.client.get(f"/v1/solves/{solve['id']}", params={"wait": 30}))
        if solve["result"] is None or solve["result"]["plan_url"] is None:
            raise NoPlan(json.dumps(solve["error"] or solve["result"]))
        return answer_of(service.client.get(solve["result"]["plan_url"]))


WAYS: dict[str, Callable[[Path], Document]] = {"command": plan_by_command, "service": plan_by_service}


def repeat(spec: Path, ways: Sequence[str], num_runs: int) -> list[Run]:
    """Plan many times under changing load; print one line each."""
    print(f"{'run':>3}  {'by':<8}{'busy processes':<30}{'seconds':>8}  {'ended':<10}{'digest':<17}")
    runs: list[Run] = []
    with BusyProcesses(max(LEVELS)) as busy:
        for index in range(num_runs):
            turn = index // len(ways) % len(LEVELS)
            levels = (0,) if index == 0 else (*LEVELS[turn:], *LEVELS[:turn])
            by = ways[index % len(ways)]
            stay = {"least_seconds": LEAST_SECONDS, "most_seconds": MOST_SECONDS}
            with changing_load(busy, levels, seed=index, **stay) as passed:
                began = time.monotonic()
                plan = WAYS[by](spec)
                seconds = time.monotonic() - began
            runs.append(Run(by=by, levels=tuple(passed), seconds=seconds, plan=plan))
            print(line(index + 1, runs[-1]), flush=True)
    return runs


def line(number: int, run: Run) -> str:
    """Return a run as a row of the table."""
    changes = [level for at, level in enumerate(run.levels) if at == 0 or level != run.levels[at - 1]]
    levels = " ".join(map(str, changes))
    shown = levels if len(levels) <= 28 else f"{levels[:25].rsplit(' ', 1)[0]} .."
    ended = "clock" if run.is_cut_by_the_clock else str(run.plan["termination"]["reason"]).lower()
    return f"{number:>3}  {run.by:<8}{shown:<30}{run.seconds:>8.1f}  {ended:<10}{run.digest[:16]:<17}"


def verdict(runs: Sequence[Run]) -> tuple[bool, list[str]]:
    """Return whether all plans are equal, and what to say about it."""
    size = len(compared_bytes(runs[0].plan))
    printed = [f"{sum(run.is_cut_by_the_clock for run in runs)} of {len(runs)} plans were cut by the clock"]
    placements = len({run.plan["plan_digest"] for run in runs})
    printed.append(f"placements: {'all the same' if placements == 1 else f'{placements} different ones'} (plan_digest)")
    wrong = [number for number, run in enumerate(runs, 1) if run.digest != runs[0].digest]
    if not wrong:
        return True, [*printed, f"EQUAL: {len(runs)} plans of {size:,} bytes, all the same"]
    other = runs[wrong[0] - 1]
    where = first_difference(json.loads(compared_bytes(runs[0].plan)), json.loads(compared_bytes(other.plan)))
    reported = f"DIFFERENT: {len(wrong)} of {len(runs)} plans; run {wrong[0]} first at {where}"
    if all(runs[number - 1].is_cut_by_the_clock for number in wrong):
        return False, [*printed, reported, "every one of these says that the clock cut it: raise --time-limit"]
    return False, [*printed, reported]


def price(spec: Path, by_the_clock: Path, num_runs: int) -> list[str]:
    """Print what reproducible mode costs: medians of some runs each, by turns, without load of ours."""
    found: dict[Path, list[tuple[float, float]]] = {spec: [], by_the_clock: []}
    for _ in range(num_runs):
        for path, reached in found.items():
            plan = plan_by_command(path)
            reached.append((plan["objective"]["seconds"], plan["provenance"]["solver_seconds"]))
    reported = [f"price of reproducible mode: medians of {num_runs} runs each, no load of ours"]
    for path, name in ((spec, "reproducible"), (by_the_clock, "by the clock")):
        objective, seconds = (median(column) for column in zip(*found[path], strict=True))
        reported.append(f"  {name:<14}objective {objective * _MILLISECONDS:10.5f} ms   solve {seconds:6.2f} s")
    ours, theirs = (median(value for value, _ in found[path]) for path in (spec, by_the_clock))
    return [*reported, f"  the objective is {ours / theirs - 1:+.3%} of the one reached by the clock"]


def default_spec() -> Document:
    """Return a made-up problem whose search spends all of its work."""
    return meta_family(num_tables=60, num_ranks=8, fill=0.8, seed=0)


def with_solver(spec: Mapping[str, Any], **solver: object) -> Document:
    """Return a spec with fields of ``solver`` replaced; those that are ``None`` stay."""
    changes = {key: value for key, value in solver.items() if value is not None}
    return {**spec, "solver": {**(spec.get("solver") or {}), **changes}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, compare, print."""
    given = _parser().parse_args(arguments)
    stated = default_spec() if given.spec is None else json.loads(given.spec.read_text())
    reproducible = {
        "partitioner": given.partitioner,
        "time_limit_seconds": given.time_limit,
        "work_limit_seconds": given.work_limit,
        "reproducible": True,
    }
    free = {"partitioner": given.partitioner, "time_limit_seconds": given.work_limit, "reproducible": False}
    warm()  # compiling is no part of any solve
    with tempfile.TemporaryDirectory() as folder:
        spec, by_the_clock = Path(folder) / "reproducible.json", Path(folder) / "by_the_clock.json"
        spec.write_text(json.dumps(with_solver(stated, **reproducible)))
        by_the_clock.write_text(json.dumps(with_solver(stated, **free)))
        try:
            equal, reported = verdict(repeat(spec, given.by, given.runs))
            if given.price_runs:
                reported = [*price(spec, by_the_clock, given.price_runs), *reported]
        except (NoPlan, NotServed) as error:
            print(f"no plan to compare: {error}", file=sys.stderr)
            return 2
    print("", *reported, sep="\n")
    return 0 if equal else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=_positive, default=20, help="runs to compare")
    parser.add_argument("--spec", type=Path, help="a spec; default: 60 made-up tables on 8 ranks")
    parser.add_argument("--partitioner", choices=partitioner_names(), help="instead of the spec's")
    parser.add_argument("--work-limit", type=float, default=10.0, help="work per solve, and the time by the clock")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds that a solve may take under load")
    parser.add_argument("--by", nargs="+", choices=tuple(WAYS), default=list(WAYS), help="default: both, by turns")
    parser.add_argument("--price-runs", type=int, default=3, help="runs for the price of it, of each mode; 0: none")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
