"""Models larger than the accelerators' memory: the ledger of 12 T parameters, and plans compared with rules of thumb.

    python benchmarks/tiers/tiers.py [--source META_DLRM_2021] [--tables 856] [--time-limit 30]
        [--partitioner portfolio]

The ledger: a model of Neo's size (Mudigere et al., ISCA 2022, model F: 12e12 parameters in tens of tables, 256
columns) on 16 hosts of 8 x (40 GB HBM + 187.5 GB DDR), with three kinds of weights and optimizer. Then tables of 128
columns, Meta's 856 of 2021 where their folder is given and as many made-up ones like them elsewhere, on 8 and 16
ranks: our plan next to the best rule of thumb (tier_heuristics.py), each scored by the same model from its shards.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.inputs.meta_like import draw_tables
from benchmarks.tiers.tier_heuristics import best_rule
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import load_profile
from cost_models.registry import make_cost_model
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.access import ReuseHistogram, ZipfAccess
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem, Reservation
from planner.domain.problem.table import Feature, Table
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.kernels.warm_up import warm
from planner.solver.partitioners.registry import make_partitioner

PROFILE = "zionex-a100-40g"
COLUMNS = 128
BATCH = 65_536  # samples of all ranks, as Meta's tables were counted
LEDGER_TABLES, LEDGER_COLUMNS, LEDGER_PARAMETERS = 24, 256, 12e12
#: ranks, bytes of HBM of each, type of the weights: models of 2 to 4 times the memory
SETTINGS = ((16, 40e9, "fp32"), (16, 32e9, "fp32"), (16, 16e9, "fp16"), (8, 40e9, "fp16"), (8, 32e9, "fp16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Who plans, and for how long."""

    partitioner: str
    time_limit_seconds: float


def ledger_problem(data_type: str, optimizer: str) -> Problem:
    """Return the model of 12 T parameters on 128 ranks."""
    rows = int(LEDGER_PARAMETERS / LEDGER_COLUMNS / LEDGER_TABLES)
    tables = tuple(
        Table(
            name=f"table_{index}",
            num_embeddings=rows,
            embedding_dim=LEDGER_COLUMNS,
            features=(Feature(name=f"table_{index}", pooling_factor=20.0),),
            data_type=DATA_TYPES[data_type],
            optimizer=OPTIMIZERS[optimizer],
            access=ZipfAccess(alpha=1.05),
        )
        for index in range(LEDGER_TABLES)
    )
    cluster = Cluster(hardware=load_profile(PROFILE), num_hosts=16, ranks_per_host=8)
    return Problem(tables=tables, cluster=cluster, batch_size_per_rank=512, reservation=Reservation(hbm_fraction=0.05))


def wide_problem(tables: tuple[Table, ...], num_ranks: int, hbm_bytes: float, data_type: str) -> Problem:
    """Return tables on ranks of little memory."""
    hardware = load_profile(PROFILE).with_overrides({"hbm_bytes": hbm_bytes}, {"hbm_bytes": FIELDS["hbm_bytes"].unit})
    cluster = Cluster(hardware=hardware, num_hosts=-(-num_ranks // 8), ranks_per_host=min(num_ranks, 8))
    preserved = tuple(replace(table, data_type=DATA_TYPES[data_type]) for table in tables)
    return Problem(tables=preserved, cluster=cluster, batch_size_per_rank=BATCH // num_ranks)


def meta_tables(source: Path, num_tables: int) -> tuple[Table, ...]:
    """Return the first of Meta's tables, with the histogram of each."""
    listed = json.loads((source / "tables.json").read_bytes())["tables"][:num_tables]
    return tuple(
        Table(
            name=one["name"],
            num_embeddings=one["num_embeddings"],
            embedding_dim=COLUMNS,
            features=(Feature(name=one["name"], pooling_factor=one["pooling_factor"]),),
            access=ReuseHistogram(distinct_rows=tuple(map(float, one["reuse_rows_hist"])))
            if sum(one["reuse_rows_hist"])
            else None,
        )
        for one in listed
    )


def made_up_tables(num_tables: int, seed: int = 0) -> tuple[Table, ...]:
    """Return tables like Meta's."""
    drawn = draw_tables(np.random.default_rng(seed), num_tables)
    return tuple(
        Table(
            name=f"table_{index}",
            num_embeddings=int(drawn.rows[index]),
            embedding_dim=COLUMNS,
            features=(Feature(name=f"table_{index}", pooling_factor=float(drawn.pooling_factors[index])),),
            access=ZipfAccess(alpha=float(drawn.zipf_alphas[index])),
        )
        for index in range(num_tables)
    )


def solve(problem: Problem, limits: Limits) -> tuple[PlanResult, float]:
    """Plan a problem; return the result and the seconds it took."""
    began = time.monotonic()
    result = plan(
        problem,
        cost_model=make_cost_model("roofline"),
        partitioner=make_partitioner(limits.partitioner),
        limits=SolveLimits(time_limit_seconds=limits.time_limit_seconds),
    )
    return result, time.monotonic() - began


def ledger_line(data_type: str, optimizer: str, limits: Limits) -> str:
    """Plan the large model; say how full the cluster is, or which tier is short."""
    problem = ledger_problem(data_type, optimizer)
    result, seconds = solve(problem, limits)
    head = f"{data_type} + {optimizer:<15}  {result.reason:<10} {seconds:5.1f} s  "
    if result.plan is None:
        short = result.shortfalls[0]
        return f"{head} {short.resource} short of {(short.required_bytes - short.available_bytes) / 1e12:.1f} TB"
    cluster, evaluation = problem.cluster, result.plan.evaluation
    has = {tier: cluster.tier_bytes(0, tier) * cluster.world_size for tier in evaluation.ranks[0].bytes}
    stored = sum(
        table.weight_bytes + table.optimizer.state_bytes(table.num_embeddings, table.embedding_dim)
        for table in problem.tables
    )
    used = {tier for tier in has if any(rank.bytes[tier] > 0 for rank in evaluation.ranks)}
    fill = stored / sum(has[tier] for tier in used)
    fullest = max(used, key=lambda tier: sum(rank.bytes[tier] / rank.capacity_bytes[tier] for rank in evaluation.ranks))
    return (
        f"{head} {stored / 1e12:.1f} TB, {fill:.0%} of {'+'.join(t.label for t in sorted(used))}; {fullest.label} binds"
    )


def heuristic_line(problem: Problem, limits: Limits) -> str:
    """Plan a model and set it next to the best rule of thumb."""
    result, seconds = solve(problem, limits)
    rule = best_rule(problem, make_cost_model("roofline"))
    hbm = problem.cluster.tier_bytes(0, problem.cluster.device_tier)
    times = sum(table.weight_bytes for table in problem.tables) / (hbm * problem.world_size)
    head = f"{len(problem.tables)} x {problem.world_size} ranks of {hbm / 1e9:.0f} GB, {times:.1f} times HBM"
    if result.plan is None:
        return f"{head}: no plan ({result.detail})"
    ours, gap = result.plan.evaluation.objective_seconds, result.plan.relative_gap or 0.0
    busiest = max((load.utilization for load in result.plan.evaluation.tiers), default=0.0)
    reported = "no rule finds a plan"
    if rule is not None:
        reported = f"{rule[0]}: {rule[1] * 1e3:8.3f} ms, ratio {ours / rule[1]:.3f}"
    return f"{head}: {ours * 1e3:8.3f} ms (gap {gap:.2%}) in {seconds:.1f} s, {reported}, busiest tier {busiest:.0%}"


def main(arguments: list[str] | None = None) -> int:
    """Run all, one line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", type=Path, help="folder with Meta's tables.json; made-up tables without it")
    parser.add_argument("--tables", type=int, default=856)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--partitioner", default="portfolio")
    given = parser.parse_args(arguments)
    limits = Limits(partitioner=given.partitioner, time_limit_seconds=given.time_limit)
    warm()
    for data_type, optimizer in (("fp32", "adagrad"), ("fp32", "rowwise_adagrad"), ("fp16", "rowwise_adagrad")):
        print(ledger_line(data_type, optimizer, limits), flush=True)
    tables = made_up_tables(given.tables) if given.source is None else meta_tables(given.source, given.tables)
    for num_ranks, hbm_bytes, name in SETTINGS:
        print(heuristic_line(wide_problem(tables, num_ranks, hbm_bytes, name), limits), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
