"""Plans that count starts of sharding types, compared with plans that do not, on small made-up models.

    python benchmarks/prices/starts.py [--models 20] [--seed 0] [--work 3] [--json FILE]

Six to 24 tables of 10^3 to 3 x 10^6 rows on one or two hosts of eight A100s or H100s, at small batches: steps of a
tenth of a millisecond to a few milliseconds. Both are judged with starts. Prints, of every model, the objective of both
plans, the gain, both gaps, the seconds of both solves, and the sharding types of both; and in how many models the gain
is 10% or more. Exits with 1 where a plan that counts starts is worse.
"""

import argparse
import json
import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from api.specs.parse import parse_spec
from planner.domain.plan.plan import Plan
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.evaluate_placement import score

_LARGE = 0.1  # a gain that counts
_ROUNDING = 1e-9


def main() -> int:
    """Plan the models; 1 where counting starts made a plan worse."""
    given = _arguments()
    limits = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=given.work, relative_gap=0.0)
    rows = [_row(number, given.seed + number, limits) for number in range(given.models)]
    large, worse = (sum(check(row["gain"]) for row in rows) for check in (_is_large, _is_worse))
    print(f"{large} of {len(rows)} models gain {_LARGE:.0%} or more; {worse} are worse")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if worse else 0


def _row(number: int, seed: int, limits: SolveLimits) -> dict[str, Any]:
    request = parse_spec(json.dumps(small_model(seed)).encode())
    counting = request.problem
    plans, seconds = [], []
    for problem in (replace(counting, counts_starts=False), counting):
        began = time.monotonic()
        found = plan(problem, cost_model=request.cost_model, partitioner=make_partitioner("portfolio"), limits=limits)
        seconds.append(time.monotonic() - began)
        if found.plan is None:
            raise SystemExit(f"model {seed} has no plan")
        plans.append(found.plan)
    before, after = (score(counting, one.placement, request.cost_model).objective_seconds for one in plans)
    row = {
        "seed": seed,
        "profile": counting.cluster.hardware.profile,
        "hosts": counting.cluster.num_hosts,
        "tables": len(counting.tables),
        "seconds_without": before,
        "seconds_with": after,
        "gain": 1 - after / before,
        "gaps": [one.relative_gap for one in plans],
        "solver_seconds": seconds,
        "sharding_types": [_types(one) for one in plans],
    }
    gaps = " -> ".join("-" if one.relative_gap is None else f"{one.relative_gap:.1%}" for one in plans)
    kinds = " -> ".join("+".join(types) for types in row["sharding_types"])
    print(
        f"{number + 1:2d} {row['profile']:12s} {row['hosts']} hosts {row['tables']:2d} tables"
        f" {before * 1e6:7.1f} -> {after * 1e6:7.1f} us {row['gain']:6.1%} gap {gaps:14s}"
        f" {seconds[0]:4.1f} -> {seconds[1]:4.1f} s {kinds}",
        flush=True,
    )
    return row


def small_model(seed: int) -> dict[str, Any]:
    """Return the spec of a model of few tables and a small batch."""
    rng = random.Random(seed)
    tables = [
        {
            "name": f"t{index}",
            "num_embeddings": int(10 ** rng.uniform(3, 6.5)),
            "embedding_dim": rng.choice((16, 32, 64, 128)),
            "pooling_factor": rng.choice((1, 2, 10, 30)),
        }
        for index in range(rng.choice((6, 10, 16, 24)))
    ]
    return {
        "name": f"small {seed}",
        "model": {"batch_size_per_rank": rng.choice((256, 512, 1024, 2048)), "tables": tables},
        "hardware": {"profile": rng.choice(("dgx-a100-80g", "dgx-h100-80g")), "num_hosts": rng.choice((1, 1, 2))},
    }


def _types(found: Plan) -> list[str]:
    return sorted({one.sharding_type.label for one in found.placement.tables})


def _is_large(gain: float) -> bool:
    return gain >= _LARGE


def _is_worse(gain: float) -> bool:
    return gain < -_ROUNDING


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first model")
    parser.add_argument("--work", type=float, default=3.0, help="counted seconds of each solve")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
