"""How steps of NVIDIA's synthetic models shrink with more GPUs: published steps next to those of plans of ours.

Their dense part is not published, and their runtime is TensorFlow. So each model is anchored at its published step on
the fewest GPUs, and the predicted change of the embeddings' step from there is set next to the published change. The
tables come from workload descriptions in a folder next to that of the measured tables.
"""

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from api.specs.parse import parse_spec
from benchmarks.prices.reality.cells import count, time
from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tables import Line, lines_with
from planner.domain.problem.cluster import MAX_RANKS
from planner.errors import PlannerError
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner

COLUMNS = frozenset({"source", "system", "model", "gpus", "nodes", "step_ms", "what"})
GROUP = "growth with GPUs"
_NAME = re.compile(r"NVIDIA synthetic (\w+)")
_PROFILE = "dgx-a100-80g"
_PLAN_SECONDS = 3.0
_MOST_SAMPLES = 2**40
_FEWEST_LINES = 2  # of a model: the anchor, and one to predict


def rows(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield the steps of the synthetic models of a folder, but for the anchors."""
    by_model: dict[str, list[Line]] = {}
    for line in lines_with(folder, COLUMNS):
        if found := _NAME.match(line.fields["model"]):
            try:
                _cluster(line), _step_seconds(line)
            except ValueError as error:
                yield line.left_out(str(error))
            else:
                by_model.setdefault(found[1].lower(), []).append(line)
    for name, lines in by_model.items():
        lines.sort(key=lambda line: math.prod(_cluster(line)[:2]))
        workload = folder.resolve().parent / "workloads" / f"nvidia_synthetic_{name}_v3.json"
        if not workload.is_file():
            yield from (line.left_out("no description of its tables next to the folder") for line in lines)
        elif len(lines) < _FEWEST_LINES:
            yield from (line.left_out("the folder has its step on one number of GPUs only") for line in lines)
        else:
            yield from _growth(name, workload, lines)


def is_synthetic(line: Line) -> bool:
    """Whether a published step is of a synthetic model."""
    return _NAME.match(line.fields["model"]) is not None


def _growth(name: str, workload: Path, lines: list[Line]) -> Iterator[PredictedRow | LeftOutRow]:
    anchor, *others = lines
    base = _sparse_seconds(workload, *_cluster(anchor))
    yield anchor.left_out("the anchor of its model: growth counts from it")
    for line in others:
        seconds = _sparse_seconds(workload, *_cluster(line))
        if base is None or seconds is None:
            yield line.left_out("no plan on as many GPUs")
            continue
        gpus, before = line.fields["gpus"], anchor.fields["gpus"]
        yield PredictedRow(
            groups=(GROUP, f"{GROUP}: NVIDIA synthetic {name}"),
            file=line.file,
            line=line.number,
            platform="NVIDIA synthetic, A100",
            subject=f"step of {name} on {gpus} GPUs, as its step on {before} and the predicted change",
            measured_seconds=_step_seconds(line),
            predicted_seconds=_step_seconds(anchor) * seconds / base,
        )


def _cluster(line: Line) -> tuple[int, int, int]:
    """Return hosts, GPUs per host and the global batch."""
    hosts, gpus = (count(line.fields, name, most=MAX_RANKS) for name in ("nodes", "gpus"))
    if gpus % hosts:
        raise ValueError(f"{gpus} GPUs on {hosts} nodes are not as many on each")
    return hosts, gpus // hosts, count(line.fields, "global_batch", most=_MOST_SAMPLES)


def _step_seconds(line: Line) -> float:
    return time(line.fields, "step_ms") / 1e3


@cache
def _sparse_seconds(workload: Path, num_hosts: int, ranks_per_host: int, global_batch: int) -> float | None:
    """Return the embeddings' seconds of a step under a plan of ours; ``None`` without a plan."""
    described = json.loads(workload.read_text(encoding="utf-8"))
    spec = {
        "runtime": "distributed_embeddings",
        "model": {
            "batch_size_per_rank": global_batch // (num_hosts * ranks_per_host),
            "pipeline": "none",
            "tables": [_table(one, described["access"]["alpha"]) for one in described["tables"]],
        },
        "hardware": {"profile": _PROFILE, "num_hosts": num_hosts, "ranks_per_host": ranks_per_host},
    }
    try:
        request = parse_spec(json.dumps(spec).encode())
    except PlannerError:  # such as more GPUs on a host than the profile has
        return None
    found = plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=make_partitioner("portfolio"),
        limits=SolveLimits(time_limit_seconds=_PLAN_SECONDS),
    ).plan
    return None if found is None else found.evaluation.objective_seconds


def _table(one: dict[str, Any], alpha: float) -> dict[str, Any]:
    features = one.get("features") or [{"name": one["name"], "pooling_factor": one["pooling_factor"]}]
    return {
        "name": one["name"],
        "num_embeddings": one["num_embeddings"],
        "embedding_dim": one["embedding_dim"],
        "optimizer": "adagrad",
        "features": features,
        "access": {"zipf_alpha": alpha},
    }
