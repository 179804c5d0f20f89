"""How long a solve takes on a machine that is busy with other work, and what its plan loses.

    python benchmarks/machine/starved.py SPEC.json [...] [--busy 0 10 20] [--time-limit 10] [--json FILE]

Plans every spec while each given number of processes keeps the cores busy. Prints the seconds of a solve in a process
that has loaded the compiled search, as processes of the service have, the seconds of a whole ``shardplan plan``, and
the objective as a multiple of the objective at the first number of processes. Exits with 1 if, with up to
``--held-to`` busy processes, a solve takes longer than 1.2 times the limit or a plan is more than 1.1 times as slow.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.machine.busy import BusyProcesses
from benchmarks.service.service import SHARDPLAN, environment
from planner.solver.partitioners.kernels.warm_up import warm

_MOST_TIME, _MOST_SLOWER = 1.2, 1.1  # times the limit, and times the objective on the quiet machine
#: Solves a spec, which is read from stdin.
_SOLVE = """
import json, sys, time
from api.specs.parse import parse_spec
from planner.pipeline import plan
from planner.solver.partitioners.kernels.warm_up import warm
request = parse_spec(sys.stdin.buffer.read())
warm()
began = time.monotonic()
found = plan(
    request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
).plan
seconds = time.monotonic() - began
json.dump({"seconds": seconds, "objective": found.evaluation.objective_seconds, "limit": found.limit}, sys.stdout)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One solve."""

    spec: str
    num_busy: int
    solve_seconds: float
    command_seconds: float
    objective_seconds: float
    limit: str | None


def run_of(spec: Path, num_busy: int, time_limit_seconds: float) -> Run:
    """Plan a spec in a process of its own, then by the command, while the busy processes run."""
    stated = json.loads(spec.read_text())
    stated.setdefault("solver", {})["time_limit_seconds"] = time_limit_seconds
    text = json.dumps(stated).encode()
    done = subprocess.run([sys.executable, "-c", _SOLVE], input=text, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    began = time.monotonic()
    command = [*SHARDPLAN, "plan", "-", "--quiet", "--output", os.devnull]
    subprocess.run(command, input=text, env=environment(), check=True)
    return Run(
        spec=spec.stem,
        num_busy=num_busy,
        solve_seconds=found["seconds"],
        command_seconds=time.monotonic() - began,
        objective_seconds=found["objective"],
        limit=found["limit"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan all specs at each number of busy processes; print a line for every run."""
    given = _parser().parse_args(arguments)
    warm()  # compiling is no part of a solve
    runs: list[Run] = []
    passes = True
    print(f"{'spec':<36}{'busy':>5}{'solve, s':>10}{'command, s':>12}{'objective':>11}  limit")
    with BusyProcesses(max(given.busy)) as busy:
        for spec in given.specs:
            first: Run | None = None
            for num_busy in given.busy:
                busy.run(num_busy)
                one = run_of(spec, num_busy, given.time_limit)
                busy.run(0)
                runs.append(one)
                first = first or one
                slower = one.objective_seconds / first.objective_seconds
                is_held = one.solve_seconds <= _MOST_TIME * given.time_limit and slower <= _MOST_SLOWER
                passes = passes and (is_held or num_busy > given.held_to)
                print(
                    f"{one.spec:<36}{num_busy:>5}{one.solve_seconds:>10.1f}{one.command_seconds:>12.1f}{slower:>10.3f}x"
                    f"  {one.limit or '-'}",
                    flush=True,
                )
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in runs], indent=1) + "\n")
    return 0 if passes else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("specs", type=Path, nargs="+", metavar="SPEC.json")
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 10], help="numbers of busy processes")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of each solve, in seconds")
    parser.add_argument("--held-to", type=int, default=10, help="most busy processes that the verdict counts")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
