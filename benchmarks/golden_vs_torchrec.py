"""Our plans against TorchRec's own results, on TorchRec's estimator and objective.

    python benchmarks/golden_vs_torchrec.py GOLDEN_DIR [--time-limit SECONDS]

Plans every ``NAME.instance.json`` with cost model ``torchrec`` and objective
``max_rank_time`` and prints one row each: what TorchRec 1.8.0's planner reached and in which
time, what we reached in this run, our proven lower bound, and the ratio of the two plans.
Exits with 1 where ours is worse, or where we find no plan for an instance that has one.

TorchRec's figures were taken once with TorchRec 1.8.0, default settings and 15 % reservation,
on a loaded two-core machine; its seconds are there for the order of magnitude only. Ratios of
plan quality do not depend on the machine.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from api.convert import parse_spec
from benchmarks.convert_torchrec_golden import SUFFIX, to_spec
from planner.domain.plan import PlanResult
from planner.errors import InvalidProblem
from planner.pipeline import plan

#: Slowest rank, ms on TorchRec's estimator, and seconds that TorchRec 1.8.0's planner took.
TORCHREC_RESULTS = {
    "dlrm_dcnv2_8": (4.1733, 2.4),
    "dlrm_dcnv2_16": (8.1164, 3.5),
    "synth_50_8": (9.8219, 3.7),
    "synth_50_16": (16.9402, 13.1),
    "synth_200_16": (51.7490, 81.0),
}
MILLISECONDS = 1e3
TOLERANCE = 1e-4  # the figures above are rounded to four decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One instance, solved."""

    name: str
    result: PlanResult | None  # None where the spec was refused
    wall_seconds: float
    refusal: str = ""

    @property
    def ours_ms(self) -> float | None:
        """Our slowest rank, ms; ``None`` where there is no plan."""
        found = self.result.plan if self.result else None
        return found.evaluation.max_rank_time_seconds * MILLISECONDS if found else None

    @property
    def is_worse(self) -> bool:
        """Whether TorchRec has something better."""
        if self.name not in TORCHREC_RESULTS:
            return False
        theirs, _ = TORCHREC_RESULTS[self.name]
        return self.ours_ms is None or self.ours_ms > theirs * (1 + TOLERANCE)

    def told(self) -> str:
        """The row of the table."""
        theirs, seconds = TORCHREC_RESULTS.get(self.name, (None, None))
        ours = self.ours_ms
        if self.result is None:
            return f"{self.name:<16}  refused: {self.refusal}"
        cells = [
            f"{self.name:<16}",
            f"{theirs:10.4f} {seconds:7.1f}" if theirs is not None else f"{'none':>10} {'':>7}",
            f"{ours:10.4f}" if ours is not None else f"{'none':>10}",
            f"{self.result.lower_bound_seconds * MILLISECONDS:10.4f}",
            f"{self.wall_seconds:7.1f}",
            f"{ours / theirs:7.4f}" if ours is not None and theirs is not None else f"{'':>7}",
            self.result.reason + (f" ({self.result.limit})" if self.result.limit else ""),
        ]
        return "  ".join(cells)


def solve(path: Path, *, time_limit_seconds: float) -> Row:
    """Plan one instance."""
    spec = to_spec(json.loads(path.read_text()), time_limit_seconds=time_limit_seconds)
    name, started = path.name.removesuffix(SUFFIX), time.monotonic()
    try:
        request = parse_spec(json.dumps(spec).encode())
    except InvalidProblem as refusal:
        return Row(name=name, result=None, wall_seconds=time.monotonic() - started, refusal=str(refusal))
    result = plan(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    return Row(name=name, result=result, wall_seconds=time.monotonic() - started)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("golden", type=Path)
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds per solve")
    given = parser.parse_args(arguments)
    paths = sorted(given.golden.glob(f"*{SUFFIX}"))
    if not paths:
        print(f"no *{SUFFIX} found in {given.golden}", file=sys.stderr)
        return 1
    print("slowest rank in ms on TorchRec's estimator; ratio = ours / TorchRec's, below 1 is better")
    print(f"{'instance':<16}  {'TorchRec':>10} {'s':>7}  {'ours':>10}  {'bound':>10}  {'s':>7}  {'ratio':>7}")
    rows = []
    for path in paths:
        rows.append(solve(path, time_limit_seconds=given.time_limit))
        print(rows[-1].told(), flush=True)
    return 1 if any(row.is_worse for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
