"""The step of a model over the memory of its accelerators, with and without stashed weights; writes JSON.

    python benchmarks/tiers/stash_curve.py SPEC.json[.gz] --dense-forward 0.4 --dense-backward 0.8 \\
        --activation-bytes 2e10 --shares 1,0.9,0.8 --out curve.json

Every point has a share of the memory that the spec names. A point without a plan says why. Rows may not lie in host
memory, so that the two curves differ by the stash alone. Dense seconds and activations replace those of the spec.
"""

import argparse
import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from cost_models.vocabulary import DEVICE_KERNELS, Tier
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.pipeline import plan
from planner.pricing.memory.stash import room_bytes
from planner.solver.partitioners.registry import make_partitioner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--dense-forward", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--dense-backward", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--activation-bytes", type=float, required=True, metavar="BYTES")
    parser.add_argument("--shares", default="1,0.95,0.9,0.85,0.8", help="of the memory that the spec names")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="SECONDS", help="of each search")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    request = request_of(arguments)
    points = []
    for share in (float(text) for text in arguments.shares.split(",")):
        hbm = share * request.problem.cluster.tier_bytes(0, Tier.HBM)
        point: dict[str, Any] = {"hbm_share": share, "hbm_bytes": round(hbm)}
        for name, stash in (("without_stash", None), ("with_stash", Stash())):
            problem = with_hbm(request.problem, hbm, stash)
            point[name] = _point(_solve(request, problem, arguments.time_limit), room_bytes(problem))
        print(json.dumps(point), file=sys.stderr, flush=True)
        points.append(point)
    document = {
        "model": request.name,
        "activation_bytes": arguments.activation_bytes,
        "dense_seconds": [arguments.dense_forward, arguments.dense_backward],
        "points": points,
    }
    text = json.dumps(document, indent=1)
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text + "\n")


def request_of(arguments: argparse.Namespace) -> SolveRequest:
    """Return the request of a spec whose dense part is that of the command line."""
    raw = arguments.spec.read_bytes()
    spec = json.loads(gzip.decompress(raw) if arguments.spec.suffix == ".gz" else raw)
    dense = spec["model"].setdefault("dense", {})
    dense |= {
        "forward_seconds": arguments.dense_forward,
        "backward_seconds": arguments.dense_backward,
        "activation_bytes": arguments.activation_bytes,
    }
    return parse_spec(json.dumps(spec).encode())


def with_hbm(problem: Problem, hbm_bytes: float, stash: Stash | None) -> Problem:
    """Return the problem with so much memory on every rank, and no rows in host memory."""
    hardware = problem.cluster.hardware.with_overrides({"hbm_bytes": hbm_bytes}, {"hbm_bytes": "bytes"})
    tables = tuple(
        replace(table, constraints=replace(table.constraints, compute_kernels=DEVICE_KERNELS))
        if table.constraints.compute_kernels is None
        else table
        for table in problem.tables
    )
    cluster = replace(problem.cluster, hardware=hardware)
    return replace(problem, cluster=cluster, stash=stash, tables=tables)


def _solve(request: SolveRequest, problem: Problem, time_limit: float) -> PlanResult:
    limits = replace(request.limits, time_limit_seconds=time_limit)
    partitioner = make_partitioner(request.partitioner_name)
    return plan(problem, cost_model=request.cost_model, partitioner=partitioner, limits=limits)


def _point(result: PlanResult, room: float) -> dict[str, Any]:
    """Return the figures of one plan, or why there is none."""
    if result.plan is None:
        return {"reason": result.reason, "limit": result.limit, "detail": result.detail}
    evaluation = result.plan.evaluation
    found: dict[str, Any] = {
        "step_time_seconds": evaluation.objective_seconds,
        "lower_bound_seconds": result.plan.lower_bound_seconds,
        "reason": result.reason,
        "limit": result.limit,
        "peak_bytes": round(max(one.step_memory.peak_bytes for one in evaluation.ranks if one.step_memory is not None)),
    }
    if evaluation.whole_step is not None:
        found["whole_step_seconds"] = evaluation.whole_step.seconds
    stash = evaluation.stash
    if stash is not None:
        found |= {
            "room_bytes": round(room),
            "num_stashed_tables": stash.num_tables,
            "stashed_bytes": round(stash.stashed_bytes),
            "all_ranks_stashed_bytes": round(stash.all_ranks_bytes),
            "copy_seconds": [stash.to_host_seconds, stash.to_device_seconds],
            "wait_seconds": stash.wait_seconds,
        }
    return found


if __name__ == "__main__":
    main()
