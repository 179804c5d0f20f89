"""TorchRec's own planner compared with ours on models larger than device memory, on its own estimator.

    python benchmarks/peers/torchrec_tiers.py [--setting NAME ...] [--tables 10 20 40 60] [--ranks 4 8 16] [--times 3]
        [--seed 0] [--time-limit 10] [--peer-time-limit 120]

Instances are of TorchRec's family (``instances.py``), with as little device memory that the weights
are ``--times`` as much. Both planners have the kernels fused, fused_uvm and fused_uvm_caching (and
dense for data_parallel), the objective ``max_rank_time``, TorchRec's estimator, and its ledger.

==============  =================================================================================
share           nothing is known of accesses; a cache holds 0.2 of the rows, TorchRec's default
statistics      accesses are Zipf's, and TorchRec gets the same curves as ours has. Its
                ``EmbeddingOffloadScaleupProposer`` sizes caches of at least 0.2 freely; ours
                chooses from the shares that it lists if none are named
prefetching     the same with a pipeline that prefetches
==============  =================================================================================

Prints slowest rank and seconds of both, and ours over theirs. Both are what TorchRec's estimators say:
ours is rated by them, and counts as no plan where they do not find room for it. Exits with 1 where
ours is slower.
"""

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from api.specs.parse import parse_spec
from benchmarks.inputs.draws import uniforms
from benchmarks.inputs.instances import ELEMENT_BYTES, torchrec_family
from benchmarks.peers import torchrec_live
from benchmarks.peers.torchrec_live import Caches, KnownAccess, LiveResult
from benchmarks.peers.torchrec_options import MILLISECONDS_PER_SECOND
from benchmarks.peers.torchrec_rating import Rating, rate
from planner.access.table_columns import table_columns
from planner.domain.plan.plan import Plan
from planner.pipeline import plan
from planner.solver.partitioners.registry import make_partitioner

KERNELS = ("fused", "fused_uvm", "fused_uvm_caching", "dense")
TORCHREC_SHARE = 0.2  # TorchRec 1.8.0, planner/constants.py: UVM_CACHING_RATIO
LEAST_ALPHA, MOST_ALPHA = 0.6, 1.4  # Zipf exponents, drawn evenly
_EXACT = 1e-9  # float sums in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What both planners get of caches."""

    knows_accesses: bool
    pipeline: str


SETTINGS = {
    "share": Setting(knows_accesses=False, pipeline="none"),
    "statistics": Setting(knows_accesses=True, pipeline="none"),
    "prefetching": Setting(knows_accesses=True, pipeline="train_prefetch_sparse_dist"),
}


def tiers_spec(name: str, *, num_tables: int, num_ranks: int, times: float, seed: int) -> dict[str, Any]:
    """Make a spec of a setting whose weights are ``times`` the device memory of all ranks."""
    setting = SETTINGS[name]
    spec = torchrec_family(num_tables=num_tables, num_ranks=num_ranks, seed=seed)
    alphas = np.round(LEAST_ALPHA + (MOST_ALPHA - LEAST_ALPHA) * uniforms(np.random.default_rng(seed), num_tables), 3)
    tables = []
    for table, alpha in zip(spec["model"]["tables"], alphas.tolist(), strict=True):
        known = {"access": {"zipf_alpha": alpha}} if setting.knows_accesses else {}
        shares = {} if setting.knows_accesses else {"cache_load_factors": [TORCHREC_SHARE]}
        tables.append(table | known | {"constraints": {"compute_kernels": list(KERNELS)} | shares})
    weights = sum(t["num_embeddings"] * t["embedding_dim"] * ELEMENT_BYTES[t["data_type"]] for t in tables)
    hardware = spec["hardware"]
    overrides = hardware["overrides"] | {"hbm_bytes": math.ceil(weights / times / num_ranks)}
    return {
        **spec,
        "name": f"{name}-t{num_tables}-r{num_ranks}-x{times:g}-s{seed}",
        "model": spec["model"] | {"tables": tables, "pipeline": setting.pipeline},
        "hardware": hardware | {"overrides": overrides},
    }


def caches_of(spec: Mapping[str, Any]) -> Caches:
    """Return what TorchRec gets of a spec's caches: the accesses that ours counts with."""
    if "access" not in spec["model"]["tables"][0]:
        return Caches(share=TORCHREC_SHARE)
    columns = table_columns(parse_spec(json.dumps(spec).encode()).problem)
    accesses = {
        table["name"]: KnownAccess(
            distinct_rows=float(columns.distinct_of_all_ranks[index]),
            missed_share=lambda share, index=index: float(
                columns.row_blocks.misses.missed_of(index, np.array([share]))[0]
            ),
        )
        for index, table in enumerate(spec["model"]["tables"])
    }
    return Caches(share=TORCHREC_SHARE, accesses=accesses)


def torchrec_plan(spec: Mapping[str, Any], *, time_limit_seconds: int) -> LiveResult:
    """Run TorchRec's planner on a spec of :func:`tiers_spec`."""
    return torchrec_live.plan(spec, kernels=KERNELS, caches=caches_of(spec), time_limit_seconds=time_limit_seconds)


def our_plan(spec: Mapping[str, Any], *, time_limit_seconds: float) -> Plan | None:
    """Run ours on a spec of :func:`tiers_spec`."""
    request = parse_spec(json.dumps(spec).encode())
    limits = replace(request.limits, time_limit_seconds=time_limit_seconds)
    partitioner = make_partitioner("portfolio")
    return plan(request.problem, cost_model=request.cost_model, partitioner=partitioner, limits=limits).plan


def torchrec_rating(spec: Mapping[str, Any], found: Plan) -> Rating:
    """Let TorchRec's estimators rate a plan of a spec of :func:`tiers_spec`."""
    return rate(spec, found.placement, kernels=KERNELS, caches=caches_of(spec))


def main(arguments: list[str] | None = None) -> int:
    """Run both planners; print one line per instance, then a summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--setting", nargs="+", choices=tuple(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--tables", type=int, nargs="+", default=[10, 20, 40, 60])
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--times", type=float, nargs="+", default=[3.0], help="weights over memory of all devices")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds of ours")
    parser.add_argument("--peer-time-limit", type=int, default=120, help="seconds of TorchRec's search")
    given = parser.parse_args(arguments)
    print(
        f"{'instance':<28} {'TorchRec ms':>12} {'s':>7} {'packed':>11} {'ours ms':>10} {'s':>6} {'gap':>7} {'ratio':>7}"
    )
    ratios = []
    for name, tables, ranks, times, seed in itertools.product(
        given.setting, given.tables, given.ranks, given.times, given.seed
    ):
        spec = tiers_spec(name, num_tables=tables, num_ranks=ranks, times=times, seed=seed)
        theirs = torchrec_plan(spec, time_limit_seconds=given.peer_time_limit)
        began = time.monotonic()
        ours = our_plan(spec, time_limit_seconds=given.time_limit)
        seconds = time.monotonic() - began
        rating = None if ours is None else torchrec_rating(spec, ours)
        found = math.inf if rating is None or not rating.fits else rating.max_rank_seconds
        ratio = 1.0 if math.isinf(found) and math.isinf(theirs.max_rank_seconds) else found / theirs.max_rank_seconds
        ratios.append(ratio)
        packed = f"{theirs.num_packed}/{theirs.num_proposals}"
        gap = "-" if ours is None or ours.relative_gap is None else f"{ours.relative_gap:.2%}"
        print(
            f"{spec['name']:<28} {theirs.max_rank_seconds * MILLISECONDS_PER_SECOND:12.4f} {theirs.wall_seconds:7.1f} "
            f"{packed:>11} {found * MILLISECONDS_PER_SECOND:10.4f} {seconds:6.1f} {gap:>7} {ratio:7.4f}",
            flush=True,
        )
    worse = sum(ratio > 1 + _EXACT for ratio in ratios)
    middle = float(np.median(ratios))
    print(f"{len(ratios)} instances, {worse} worse than TorchRec's; ratio: median {middle:.4f}, most {max(ratios):.4f}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
