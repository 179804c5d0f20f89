"""How long a learned model takes to load, to price shards and a whole problem, and to judge ranks.

    python benchmarks/prices/learned_speed.py --model MODEL.json [--shards 10000] [--tables 1000] [--ranks 128]
        [--repeats 30]

The work is that of Meta-like tables (``instances.py``). Prints the least of the repeats, since machines have other
things to do, and next to it how many times the roofline's that is.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from api.specs.parse import parse_spec
from benchmarks.inputs.instances import meta_family
from cost_models.arrays import Ints
from cost_models.learned.document.file import parse_model
from cost_models.protocol import CostModel, ShardWork
from cost_models.registry import make_cost_model
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.pricing.price_options import price, shape_work

MILLISECONDS = 1e3
_WHOLE_PROBLEM_REPEATS = 3


def main() -> None:
    """Print one line for each thing that is timed."""
    given = _arguments()
    content = given.model.read_bytes()
    model, roofline = parse_model(content), make_cost_model("roofline")
    problem = _problem(given.tables, given.ranks)
    work = shape_work(problem, enumerate_families(problem))
    hardware = problem.cluster.hardware
    shards = work.take(np.resize(np.random.default_rng(0).permutation(work.num_shards), given.shards))
    rank: Ints = np.arange(given.shards) % given.ranks
    reported = model.unknown(shards, hardware)
    print(
        f"{model.name}@{model.version}: {sum(map(bool, reported))} of {given.shards} shards outside what was measured"
    )
    _line("load", _least(lambda: parse_model(content), given.repeats))
    times = {one.name: _least(_pricing(one, shards, problem), given.repeats) for one in (model, roofline)}
    _line(f"price {given.shards} shards", times[model.name], times[roofline.name])
    inside = np.array([not reason for reason in reported])
    if inside.any():
        known = shards.take(np.resize(np.flatnonzero(inside), given.shards))
        times = {one.name: _least(_pricing(one, known, problem), given.repeats) for one in (model, roofline)}
        _line(f"price {given.shards} shards, all inside what was measured", *times.values())
    _line(
        f"judge them on {given.ranks} ranks", _least(lambda: model.predict_ranks(shards, rank, hardware), given.repeats)
    )
    families = enumerate_families(problem)
    both = [
        _least(lambda one=one: price(problem, families, one), _WHOLE_PROBLEM_REPEATS)  # type: ignore[misc]
        for one in (model, roofline)
    ]
    _line(f"price {given.tables} tables x {given.ranks} ranks, {work.num_shards} shapes", *both)


def _pricing(model: CostModel, work: ShardWork, problem: Problem) -> Callable[[], object]:
    return lambda: model.predict(work, problem.cluster.hardware)


def _problem(num_tables: int, num_ranks: int) -> Problem:
    spec = meta_family(num_tables=num_tables, num_ranks=num_ranks, fill=0.5, seed=0)
    return parse_spec(json.dumps(spec).encode()).problem


def _least(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def _line(what: str, seconds: float, next_to: float | None = None) -> None:
    ratio = "" if next_to is None else f"   {seconds / next_to:.2f} x the roofline's"
    print(f"{what:60} {MILLISECONDS * seconds:9.2f} ms{ratio}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Seconds that a learned model takes.")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=10_000)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=30)
    return parser.parse_args()


if __name__ == "__main__":
    main()
