"""TorchRec's own plans, and how much better they become: what ``shardplan improve`` does, as a table.

    python benchmarks/peers/improve_torchrec.py [SPEC.json ...] [--time-limit SECONDS] [--torchrec-limit SECONDS]

Without specs: the DLRM-DCNv2 examples, priced by ours (``roofline``, step time), and, where ``../shared`` has them, the
golden instances, priced by TorchRec's own estimator (slowest rank). Each is planned by TorchRec with its defaults,
written as JSON, read back, judged, and searched on from. ``more than the best`` is proven of TorchRec's plan: at least,
and at most. Needs TorchRec.
"""

import argparse
import json
import logging
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from api.services.plans.reports import evaluation_of
from api.specs.parse import parse_plan, parse_spec
from benchmarks.inputs.convert_torchrec_golden import SUFFIX, to_spec
from benchmarks.peers import torchrec_live
from benchmarks.service.service import ROOT
from planner.domain.plan.movement import MAX_REMAINING_STEPS, PreviousPlan
from planner.pipeline import plan

_MILLISECONDS = 1e3
_EXAMPLES = ("dlrm_dcnv2_8.json", "dlrm_dcnv2_2x8.json")
#: What examples leave to their profile and TorchRec must be given.
_OVERRIDES = {"hbm_bytes": 80 * 1024**3, "ddr_bytes": 128 * 1024**3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Improved:
    """TorchRec's plan of an instance, and ours."""

    name: str
    prices: str
    torchrec_seconds: float  # wall clock of its planner
    given_seconds: float | None  # objective; None where it found no plan
    num_violations: int
    found_seconds: float
    bound_seconds: float
    search_seconds: float  # wall clock

    def line(self) -> str:
        """One row of the table."""
        cells = [f"{self.name:<22} {self.prices:<22} {self.torchrec_seconds:7.1f}"]
        if self.given_seconds is None:
            cells.append(f"{'no plan':>10} {'':>8} {self.found_seconds * _MILLISECONDS:10.4f}")
            cells.append(f"{'':>8} {'':>17}")
        else:
            less = 1 - self.found_seconds / self.given_seconds
            least, most = (self.given_seconds / other - 1 for other in (self.found_seconds, self.bound_seconds))
            given = f"{self.given_seconds * _MILLISECONDS:10.4f} {self.num_violations:8d}"
            cells.append(f"{given} {self.found_seconds * _MILLISECONDS:10.4f}")
            cells.append(f"{less:8.2%} {f'{least:.2%} - {most:.2%}':>17}")
        cells.append(f"{self.found_seconds / self.bound_seconds - 1:8.2%} {self.search_seconds:7.1f}")
        return " ".join(cells)


def improved(spec: Mapping[str, Any], *, time_limit_seconds: float, torchrec_limit_seconds: int) -> Improved:
    """Have TorchRec plan a spec, and search on from its plan."""
    raw = json.dumps({**spec, "solver": {**spec.get("solver", {}), "time_limit_seconds": time_limit_seconds}})
    request = parse_spec(raw.encode())
    theirs = torchrec_live.plan(reported(request.spec), time_limit_seconds=torchrec_limit_seconds)
    given_seconds, num_violations, previous = None, 0, None
    if theirs.sharding_plan is not None:
        given = parse_plan(json.dumps(theirs.sharding_plan).encode(), request.problem)
        evaluation = evaluation_of(request, given)
        num_violations = evaluation.num_violations
        if evaluation.score is None:
            raise SystemExit(f"{request.name}: {evaluation.violations[0].message}")
        given_seconds = evaluation.score["objective_seconds"]
        previous = PreviousPlan(placement=given.placement, remaining_steps=MAX_REMAINING_STEPS, min_relative_gain=0.0)
    began = time.monotonic()
    result = plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=replace(request.limits, reproducible=False),
        previous=previous,
    )
    seconds = time.monotonic() - began
    if result.plan is None:
        raise SystemExit(f"{request.name}: no plan: {result.detail}")
    return Improved(
        name=request.name,
        prices=f"{request.cost_model.name}, {request.problem.objective}",
        torchrec_seconds=theirs.wall_seconds,
        given_seconds=given_seconds,
        num_violations=num_violations,
        found_seconds=result.plan.evaluation.objective_seconds,
        bound_seconds=result.plan.lower_bound_seconds,
        search_seconds=seconds,
    )


def reported(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a normalised spec with what TorchRec must be given of the hardware."""
    hardware = spec["hardware"]
    return {**spec, "hardware": {**hardware, "overrides": _OVERRIDES | hardware.get("overrides", {})}}


def instances(shared: Path) -> Iterator[dict[str, Any]]:
    """Yield the specs of the table."""
    for name in _EXAMPLES:
        yield json.loads((ROOT / "examples" / name).read_text())
    paths = sorted((shared / "torchrec_golden").glob(f"*{SUFFIX}"))
    if not paths:
        print(f"no *{SUFFIX} in {shared / 'torchrec_golden'}: without golden instances", file=sys.stderr)
    for path in paths:
        if "infeasible" not in path.name:
            yield to_spec(json.loads(path.read_text()), time_limit_seconds=10.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("specs", type=Path, nargs="*")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds of our search")
    parser.add_argument("--torchrec-limit", type=int, default=120, help="seconds of TorchRec's search")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)  # TorchRec's advice on dry runs
    warnings.simplefilter("ignore", FutureWarning)
    specs = [json.loads(path.read_text()) for path in given.specs] or instances(given.shared)
    print(f"{'instance':<22} {'prices':<22} {'TorchRec':>7} {'':>10} {'broken':>7} {'improved':>10} {'':>8}")
    print(
        f"{'':<45} {'s':>7} {'ms':>10} {'rules':>8} {'ms':>10} {'less':>8} {'more than best':>17} {'gap':>8} {'s':>7}"
    )
    for spec in specs:
        limits = {"time_limit_seconds": given.time_limit, "torchrec_limit_seconds": given.torchrec_limit}
        print(improved(spec, **limits).line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
