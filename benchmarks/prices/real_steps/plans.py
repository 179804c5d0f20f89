"""The plans of a model that are trained: rules of thumb, TorchRec's planner's, ours, and legal ones at random."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from api.client import plan_digest
from api.specs.parse import parse_spec
from benchmarks.prices.real_steps.models import StepModel
from benchmarks.prices.real_steps.planners import by_torchrec, whole_tables
from benchmarks.prices.real_steps.random_plans import random_placements
from cost_models.protocol import CostModel
from cost_models.vocabulary import Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify

TORCHREC = "torchrec planner"
BY_SIZE, BY_LOOKUPS = "table-wise by size", "table-wise by lookups"
OURS = "ours: "
#: TorchRec's planner's plan once more, with tables elsewhere in memory: how far it comes from the first is chance.
TWIN = "torchrec planner, again"
_DRAWS_PER_PLAN = 20


class NoPlan(Exception):
    """A planner found no plan, or one that breaks a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlan:
    """A legal plan of a model, and who made it: rules and planners often come to the same."""

    names: tuple[str, ...]
    placement: Placement

    @property
    def name(self) -> str:
        return " = ".join(self.names)

    @property
    def digest(self) -> str:
        """What equal plans have in common."""
        return str(self.document()["plan_digest"])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The sharding types that the plan uses: TorchRec runs collectives of its own for each."""
        return tuple(sorted({table.sharding_type.label for table in self.placement.tables}))

    def document(self) -> dict[str, Any]:
        """Return the plan as a launcher takes it."""
        document: dict[str, Any] = {
            "schema_version": 1,
            "spec_digest": "sha256:" + "0" * 64,
            "world_size": self.placement.world_size,
            "ranks_per_host": self.placement.ranks_per_host,
            "tables": [_table_document(table) for table in self.placement.tables],
        }
        return {"plan_digest": plan_digest(document), **document}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a cost model predicts for a plan."""

    step_seconds: float
    phases: Mapping[str, float]  # seconds of the slowest rank by phase


def problem_of(model: StepModel, hardware: Mapping[str, Any]) -> Problem:
    """Check the spec of a model on a cluster; raises ``InvalidProblem`` where the hardware is wrong."""
    return parse_spec(json.dumps(model.spec(dict(hardware))).encode()).problem


def plans_of(
    model: StepModel, problem: Problem, cost_models: Mapping[str, CostModel], *, count: int, seconds: float, seed: int
) -> list[NamedPlan]:
    """Return ``count`` different plans, those of planners and rules first, and TorchRec's once more as a twin.

    Raises
    ------
    NoPlan
        A planner found none.
    """
    named = {
        TORCHREC: by_torchrec(model, problem),
        BY_SIZE: whole_tables(problem, [table.weight_bytes for table in problem.tables]),
        BY_LOOKUPS: whole_tables(problem, [table.ids_per_sample for table in problem.tables]),
        **{f"{OURS}{name}": _ours(problem, cost_model, seconds) for name, cost_model in cost_models.items()},
    }
    made: dict[str, NamedPlan] = {}
    for name, placement in named.items():
        if issues := verify(problem, placement):
            raise NoPlan(f"{model.name}: the plan of {name} breaks a rule: {issues[0].message}")
        _add(made, NamedPlan(names=(name,), placement=placement))
    random = random_placements(problem, np.random.default_rng(seed))
    for draw in range(_DRAWS_PER_PLAN * count):
        if len(made) >= count:
            break
        placement = next(random)
        if not verify(problem, placement):
            _add(made, NamedPlan(names=(f"random {draw}",), placement=placement))
    twin = NamedPlan(names=(TWIN,), placement=named[TORCHREC])
    return [*made.values(), twin]


def _add(made: dict[str, NamedPlan], one: NamedPlan) -> None:
    """Add a plan, or its name to the equal plan that is there."""
    known = made.get(one.digest)
    if known is None:
        made[one.digest] = one
    elif not one.names[0].startswith("random"):
        made[one.digest] = NamedPlan(names=(*known.names, *one.names), placement=known.placement)


def predicted(problem: Problem, placement: Placement, cost_model: CostModel) -> Prediction:
    """Price a plan."""
    found = score(problem, placement, cost_model)
    assert found.step_time_seconds is not None
    return Prediction(
        step_seconds=found.step_time_seconds, phases={load.phase.label: load.seconds for load in found.phases}
    )


def _ours(problem: Problem, cost_model: CostModel, seconds: float) -> Placement:
    limits = SolveLimits(time_limit_seconds=seconds, relative_gap=0.0)
    found = plan(problem, cost_model=cost_model, partitioner=make_partitioner("portfolio"), limits=limits)
    if found.plan is None:
        raise NoPlan(f"no plan under {cost_model.name}: {found.detail}")
    return found.plan.placement


def _table_document(table: TablePlacement) -> dict[str, Any]:
    return {
        "name": table.name,
        "module_path": table.module_path,
        "sharding_type": table.sharding_type.label,
        "compute_kernel": table.compute_kernel.label,
        "cache_load_factor": table.cache_load_factor,
        "shards": [
            {
                "rank": shard.rank,
                "row_offset": shard.row_offset,
                "num_rows": shard.num_rows,
                "column_offset": shard.column_offset,
                "num_columns": shard.num_columns,
                "tier": Tier(shard.tier).label,
            }
            for shard in table.shards
        ],
    }
