"""Public inference models on a host of six cards: our plans next to the rule that its builders describe.

    python benchmarks/tiers/serving.py [--shared DIR] [--profile inference-6card-m2] [--ranks 6] [--data-type TYPE]
        [--samples N] [--time-limit 10]

The rule (Facebook's inference platform, arXiv 2107.04140, as recalled in systems studies): whole tables, those of most
lookups first, each on the card with fewest lookups so far that has room for it. Its plans and ours are scored by the
same code under the cost model ``serving``. Ours are planned three times, each time with more ways to cut a table:
whole tables alone, all but replicas, and everything.

Columns: ``latency`` of a request, ``gap`` to the lower bound over the ways that were allowed (of the rule's plan: over
whole tables), ``requests/s`` that a host sustains at the default utilization limit, and the rule's latency over ours.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from benchmarks.convert_workloads import to_spec
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.formats.units import format_seconds
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Evaluation
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.pipeline import plan
from planner.pricing.memory.ledger import capacity_bytes
from planner.solver.problem import Scope
from planner.verification.evaluate_placement import bytes_by_tier, score
from planner.verification.verify import verify

#: What our plans may do, and how the table of results calls it.
WAYS: Mapping[str, frozenset[Scheme] | None] = {
    "whole tables": frozenset({Scheme.TABLE_WISE}),
    "no replicas": frozenset(Scheme) - {Scheme.DATA_PARALLEL},
    "all cuts": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One plan of one model."""

    model: str
    who: str
    evaluation: Evaluation | None  # None where no plan was found
    lower_bound_seconds: float | None


def served_spec(
    workload: Mapping[str, Any], *, profile: str, ranks: int, data_type: str | None, samples: int | None, limit: float
) -> dict[str, Any]:
    """One workload as a spec that serves requests of its batch size, or of ``samples``."""
    spec = to_spec(workload, embedding_dim=128)
    tables = [
        table | {"optimizer": "none", "data_type": data_type or table["data_type"]} for table in spec["model"]["tables"]
    ]
    return {
        "name": workload["name"],
        "model": {"tables": tables, "pipeline": "none"},
        "hardware": {"profile": profile, "ranks_per_host": ranks},
        "objective": "request_latency",
        "cost_model": "serving",
        "serving": {"samples_per_request": samples or int(workload["batch_size"])},
        "solver": {"time_limit_seconds": limit, "relative_gap": 0.001, "reproducible": False},
    }


def by_lookups(problem: Problem) -> Placement | None:
    """Whole tables, most lookups first, each where fewest are so far and where it fits; ``None`` where one does not."""
    room = capacity_bytes(problem)[:, problem.cluster.device_tier].copy()
    lookups = np.zeros(problem.world_size)
    placed: dict[str, TablePlacement] = {}
    for table in sorted(problem.tables, key=lambda table: -table.ids_per_sample):
        alone = _whole(problem, table, 0)
        needed = _bytes(problem, table, alone)
        fits = np.flatnonzero(room >= needed)
        if not len(fits):
            return None
        rank = int(fits[np.argmin(lookups[fits])])
        room[rank] -= needed
        lookups[rank] += table.ids_per_sample
        placed[table.name] = _whole(problem, table, rank)
    tables = tuple(placed[table.name] for table in problem.tables)
    return Placement(world_size=problem.world_size, ranks_per_host=problem.world_size, tables=tables)


def _whole(problem: Problem, table: Table, rank: int) -> TablePlacement:
    piece = Piece(scope=Scope.RANK, column_offset=0, num_columns=table.embedding_dim)
    shards = expand(table, piece, rank, problem.cluster, Tier.HBM)
    return TablePlacement(name=table.name, sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, shards=shards)


def _bytes(problem: Problem, table: Table, placed: TablePlacement) -> float:
    """What a table takes of its card, by the ledger that our plans are held to."""
    alone = replace(problem, tables=(table,))
    placement = Placement(world_size=problem.world_size, ranks_per_host=problem.world_size, tables=(placed,))
    return float(bytes_by_tier(alone, placement)[0, problem.cluster.device_tier])


def rows(request: SolveRequest) -> Iterator[Row]:
    """Plan one model in every way, after the rule."""
    problem, whole_bound = request.problem, None
    ours = []
    for who, schemes in WAYS.items():
        allowed = tuple(
            replace(table, constraints=replace(table.constraints, sharding_types=schemes)) for table in problem.tables
        )
        found = plan(
            replace(problem, tables=allowed),
            cost_model=request.cost_model,
            partitioner=request.partitioner,
            limits=request.limits,
        )
        whole_bound = found.lower_bound_seconds if whole_bound is None else whole_bound
        evaluation = None if found.plan is None else found.plan.evaluation
        ours.append(
            Row(model=request.name, who=who, evaluation=evaluation, lower_bound_seconds=found.lower_bound_seconds)
        )
    ruled = by_lookups(problem)
    if ruled is not None and (issues := verify(problem, ruled)):
        raise ValueError(f"Expected a legal plan of the rule: {issues[0].message}")
    scored = None if ruled is None else score(problem, ruled, request.cost_model)
    yield Row(model=request.name, who="rule", evaluation=scored, lower_bound_seconds=whole_bound)
    yield from ours


def line(row: Row, rule_seconds: float | None) -> str:
    """One row as text."""
    if row.evaluation is None:
        return f"{row.model:<26}{row.who:<14}{'no plan':>10}"
    assert row.evaluation.serving is not None
    seconds, bound = row.evaluation.objective_seconds, row.lower_bound_seconds
    gap = f"{seconds / bound - 1:.2%}" if bound else "-"
    rate = row.evaluation.serving.sustained_requests_per_second
    reported_rate = "-" if rate is None else f"{rate:,.0f}"
    better = "-" if rule_seconds is None else f"{rule_seconds / seconds:.2f}x"
    return f"{row.model:<26}{row.who:<14}{format_seconds(seconds):>10}{gap:>10}{reported_rate:>12}{better:>10}"


def main(arguments: list[str] | None = None) -> int:
    """Plan every public model that is for inference; print one line per plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="folder with workloads/")
    parser.add_argument("--profile", default="inference-6card-m2")
    parser.add_argument("--ranks", type=int, default=6, help="cards of the host that are used")
    parser.add_argument("--data-type", default=None, help="of all tables; else what each workload states")
    parser.add_argument("--samples", type=int, default=None, help="of a request; else each workload's batch size")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of each of the three plans, seconds")
    given = parser.parse_args(arguments)
    workloads = [json.loads(path.read_text()) for path in sorted((given.shared / "workloads").glob("*.json"))]
    inference = [one for one in workloads if one.get("stage") == "inference"]
    if not inference:
        print(f"no inference workload found in {given.shared / 'workloads'}", file=sys.stderr)
        return 1
    print(f"{'model':<26}{'plan':<14}{'latency':>10}{'gap':>10}{'requests/s':>12}{'vs rule':>10}")
    for workload in inference:
        spec = served_spec(
            workload,
            profile=given.profile,
            ranks=given.ranks,
            data_type=given.data_type,
            samples=given.samples,
            limit=given.time_limit,
        )
        rule_seconds = None
        for row in rows(parse_spec(json.dumps(spec).encode())):
            if row.who == "rule" and row.evaluation is not None:
                rule_seconds = row.evaluation.objective_seconds
            print(line(row, rule_seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
