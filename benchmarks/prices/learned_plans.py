"""Plans made with a learned model next to plans made with the roofline, both judged by the learned model.

    python benchmarks/prices/learned_plans.py --source META_DLRM_2021 [--ranks 4 8] [--max-dim 4 8 16 32 64 128]
        [--limit 20] [--time-limit 1] [--model MODEL.json] [--save MODEL.json] [--roofline calibrated|profile]

NeuroShard's public tasks (``neuroshard_tasks.py``), whole tables and column cuts, slowest rank. Without ``--model`` one
is fitted to the measured launches and all-to-alls of ``cost_cpu/``. The roofline has the rates of the tasks' profile,
or (by default) two rates under which its computation and its communication take as long in all as the learned model
says of one plan: what calibrating it gives. Prints, for every greatest width, the learned model's seconds of both plans
as a ratio (geometric mean, best, worst) and their means; exits with 1 where a plan made with it is worse.
"""

import argparse
import gzip
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from api.specs.parse import parse_spec
from benchmarks.inputs import neuroshard_tasks
from benchmarks.inputs.neuroshard_measurements import read_exchanges, read_lookups, table_facts
from cost_models.fitting.model import fit_model
from cost_models.learned.document.file import model_bytes, parse_model
from cost_models.learned.model import LearnedModel
from cost_models.measurements.schema import Measurements, joined
from cost_models.protocol import CostModel
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Phase
from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.evaluate_placement import score

MEASURED_RANKS = (4, 8)
SCHEMES = ["table_wise", "column_wise"]  # what the all-to-alls were measured for
_ROUNDING = 1e-9


def main() -> int:
    """Run the tasks; 1 where a plan made with the learned model is worse, 2 where data is missing."""
    given = _arguments()
    if not (given.source / "cost_cpu").is_dir():
        print(f"no measured costs in {given.source / 'cost_cpu'}", file=sys.stderr)
        return 2
    content = given.model.read_bytes() if given.model else _fitted(given.source)
    if given.save:
        given.save.write_bytes(content)
    model = parse_model(content)
    print(f"judged by {model.name}@{model.version}, {model.device}")
    worse = 0
    for num_ranks in given.ranks:
        rates = _rates(given, model, num_ranks)
        memory, links = rates["hbm_bytes_per_second"], rates["intra_host_bytes_per_second"]
        print(f"{num_ranks} ranks; roofline with {memory:.3g} bytes/s of memory, {links:.3g} of links")
        print(" max dim  tasks   ratio    best   worst  learned ms  roofline ms  round")
        for max_dim in given.max_dim:
            worse += _row(given, model, num_ranks, max_dim, rates)
    print(f"worse on {worse} tasks")
    return 1 if worse else 0


def _row(given: argparse.Namespace, model: LearnedModel, num_ranks: int, max_dim: int, rates: dict[str, float]) -> int:
    """Print one line of the table, and return on how many tasks the learned model's plan is worse."""
    ratios, ours, theirs, rounds = [], [], [], []
    specs = neuroshard_tasks.specs(given.source, max_dim=max_dim, num_ranks=num_ranks)
    for _, spec in zip(range(given.limit or neuroshard_tasks.NUM_TASKS), specs, strict=False):
        problem = _problem(spec, rates)
        with_learned = _plan(problem, model, given.time_limit)
        with_roofline = _plan(problem, make_cost_model("roofline"), given.time_limit)
        if with_learned is None or with_roofline is None:
            print(f"{spec['name']}: no plan", file=sys.stderr)
            continue
        ours.append(with_learned.evaluation.objective_seconds)
        theirs.append(score(problem, with_roofline.placement, model).objective_seconds)
        ratios.append(ours[-1] / theirs[-1])
        rounds.append(with_learned.surrogate.round if with_learned.surrogate else 0)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(
        f"{max_dim:8} {len(ratios):6} {mean:7.4f} {min(ratios):7.4f} {max(ratios):7.4f}"
        f" {1e3 * statistics.fmean(ours):11.2f} {1e3 * statistics.fmean(theirs):12.2f} {statistics.fmean(rounds):6.2f}",
        flush=True,
    )
    return sum(ratio > 1 + _ROUNDING for ratio in ratios)


def _problem(spec: dict[str, Any], rates: dict[str, float]) -> Problem:
    tables = [table | {"constraints": {"sharding_types": SCHEMES}} for table in spec["model"]["tables"]]
    hardware = spec["hardware"] | {"overrides": spec["hardware"]["overrides"] | rates}
    changed = spec | {"hardware": hardware, "model": spec["model"] | {"tables": tables}}
    return parse_spec(json.dumps(changed).encode()).problem


def _plan(problem: Problem, model: CostModel, seconds: float) -> Plan | None:
    limits = SolveLimits(time_limit_seconds=seconds, relative_gap=0.0)
    return plan(problem, cost_model=model, partitioner=make_partitioner("portfolio"), limits=limits).plan


def _rates(given: argparse.Namespace, model: LearnedModel, num_ranks: int) -> dict[str, float]:
    """Return the roofline's two rates: the profile's, or what makes it agree with the learned model on one plan."""
    spec = next(neuroshard_tasks.specs(given.source, max_dim=given.max_dim[-1], num_ranks=num_ranks))
    overrides = spec["hardware"]["overrides"]
    names = ("hbm_bytes_per_second", "intra_host_bytes_per_second")
    rates = {name: overrides[name] for name in names}
    if given.roofline == "profile":
        return rates
    problem = _problem(spec, rates)
    found = _plan(problem, make_cost_model("roofline"), given.time_limit)
    assert found is not None
    compute, communication = _times_as_long(problem, found, model)
    return {names[0]: rates[names[0]] / compute, names[1]: rates[names[1]] / communication}


def _times_as_long(problem: Problem, found: Plan, model: LearnedModel) -> tuple[float, float]:
    """Return how many times as long computation and communication take by the learned model, over all ranks."""
    rated = score(problem, found.placement, model)
    parts = (
        (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE),
        (Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM),
    )
    by_part = [
        [sum(rank.seconds[phase] for rank in one.ranks for phase in part) for part in parts]
        for one in (rated, found.evaluation)
    ]
    compute, communication = np.array(by_part[0]) / np.array(by_part[1])
    return float(compute), float(communication)


def _fitted(source: Path) -> bytes:
    """Fit one model to the measured launches and all-to-alls of both rank counts."""
    facts = table_facts(json.loads((source / "tables.json").read_text())["tables"])
    parts: list[Measurements] = []
    for ranks in MEASURED_RANKS:
        lookups, collectives = (
            gzip.decompress((source / "cost_cpu" / f"{kind}_{ranks}.csv.gz").read_bytes()).decode()
            for kind in ("compute", "comm")
        )
        parts.append(read_lookups(lookups, facts, num_ranks=ranks, name=f"compute_{ranks}"))
        parts.append(read_exchanges(collectives, name=f"comm_{ranks}"))
    return model_bytes(fit_model(joined(parts), name="neuroshard-cpu"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plans of the learned model next to the roofline's.")
    parser.add_argument("--source", type=Path, required=True, help="folder of Meta's tables, tasks and measured costs")
    parser.add_argument("--ranks", type=int, nargs="+", default=list(MEASURED_RANKS))
    parser.add_argument("--max-dim", type=int, nargs="+", default=list(neuroshard_tasks.MAX_DIMS))
    parser.add_argument("--limit", type=int, help="tasks of each greatest width; all without it")
    parser.add_argument("--time-limit", type=float, default=1.0, help="of each solve, seconds")
    parser.add_argument("--model", type=Path, help="a fitted model; without it one is fitted")
    parser.add_argument("--save", type=Path, help="where to keep the model that is used")
    parser.add_argument("--roofline", choices=("calibrated", "profile"), default="calibrated")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
