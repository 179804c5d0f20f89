"""What a process does for a study of scenarios: plans evaluated in every scenario, a search for one plan of all."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from api.specs.parse import parse_plan, parse_stored_spec
from api.specs.request import SolveInputs
from cost_models.arrays import Floats
from cost_models.errors import CostModelError
from planner.domain.plan.placement import Placement, TablePlacement
from planner.errors import PlannerError

if TYPE_CHECKING:  # loaded where searches run
    from planner.orchestration.scenarios.evaluate_all import Evaluated
    from planner.orchestration.scenarios.search import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTogether:
    """How one plan of all scenarios is searched for."""

    name: str  # of the plan that is found
    weights: Sequence[float]  # of the scenarios
    quantile: float  # 1 is the worst
    is_relative: bool  # whether steps are counted in those of the best plan of each scenario
    memory_share: float
    num_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenariosJob:
    """Plans and scenarios, as they are handed to a process."""

    specs: Mapping[str, bytes]  # canonical bytes of normalised specs, by the labels of the scenarios
    plans: Mapping[str, bytes]  # plan documents, by the names of the plans
    search: SearchTogether | None
    moves: Mapping[str, tuple[str, str]]  # by scenario: the names of the plan that moves, and of the one it becomes


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenariosAnswer:
    """What a job came to."""

    compared: dict[str, Any] | None = None  # as JSON
    error: dict[str, str] | None = None


def run_scenarios(job: ScenariosJob) -> ScenariosAnswer:
    """Judge plans, measure moves, and search for a plan of all scenarios if the job asks for one."""
    try:
        return ScenariosAnswer(compared=_compared(job))
    except (PlannerError, CostModelError) as error:
        return ScenariosAnswer(error={"message": str(error), "hint": getattr(error, "hint", "")})
    except MemoryError:
        return ScenariosAnswer(error={"message": "plans in scenarios needed more memory than there is", "hint": ""})


def _compared(job: ScenariosJob) -> dict[str, Any]:
    from planner.orchestration.scenarios.evaluate_all import evaluate_all, move

    inputs = {label: parse_stored_spec(raw) for label, raw in job.specs.items()}
    problems, cost_models = zip(*((one.problem, one.cost_model) for one in inputs.values()), strict=True)
    placements = {name: parse_plan(raw, problems[0]).placement for name, raw in job.plans.items()}
    evaluated = evaluate_all(problems, list(placements.values()), cost_models)
    together = None
    if job.search is not None:
        own_seconds = np.where(evaluated.is_legal, evaluated.seconds, np.inf).min(axis=0)
        together = _together(list(inputs.values()), own_seconds, list(placements.values()), job.search)
        if together.placement is not None:
            placements[job.search.name] = together.placement
            evaluated = evaluated.with_rows(evaluate_all(problems, [together.placement], cost_models))
    moves = {
        label: asdict(move(inputs[label].problem, placements[before], placements[after]))
        for label, (before, after) in job.moves.items()
    }
    found = None if together is None else together.placement
    return {
        **_by_name(evaluated, list(placements), list(inputs)),
        "moves": moves,
        "pins": None if found is None else pins_of(found),
        "bound": 0.0 if together is None else together.bound,
        "detail": "" if together is None else together.detail,
    }


def _by_name(evaluated: "Evaluated", names: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Return steps and issues by plan and scenario; no step where a plan is none of the scenario."""
    seconds: dict[str, dict[str, float]] = {name: {} for name in names}
    issues: dict[str, dict[str, str]] = {name: {} for name in names}
    for row, column in np.argwhere(np.isfinite(evaluated.seconds)).tolist():
        seconds[names[row]][labels[column]] = float(evaluated.seconds[row, column])
    for (row, column), message in evaluated.issues.items():
        issues[names[row]][labels[column]] = message
    return {"seconds": seconds, "issues": issues}


def _together(
    inputs: Sequence[SolveInputs], own_seconds: Floats, known: Sequence[Placement], search: SearchTogether
) -> "Together":
    from planner.orchestration.scenarios.search import Together, plan_together
    from planner.orchestration.scenarios.spread import Spread

    if search.is_relative and not np.all(np.isfinite(own_seconds) & (own_seconds > 0)):
        return Together(placement=None, detail="a scenario has no plan of its own that steps could be compared with")
    return plan_together(
        [one.problem for one in inputs],
        spread=Spread(weights=np.array(search.weights), quantile=search.quantile),
        unit_seconds=own_seconds if search.is_relative else np.ones(len(inputs)),
        memory_share=search.memory_share,
        known=known,
        cost_model=inputs[0].cost_model,
        partitioner=inputs[0].partitioner,
        limits=inputs[0].limits,
        num_rounds=search.num_rounds,
    )


def pins_of(placement: Placement) -> dict[str, Any]:
    """Return the ``constraints.pinned`` of every table that places the model so."""
    return {placed.name: _pin_of(placed) for placed in placement.tables}


def _pin_of(placed: TablePlacement) -> dict[str, Any]:
    return {
        "sharding_type": placed.sharding_type.label,
        "compute_kernel": placed.compute_kernel.label,
        **({} if placed.cache_load_factor is None else {"cache_load_factor": placed.cache_load_factor}),
        "shards": [
            {
                "rank": shard.rank,
                "row_offset": shard.row_offset,
                "num_rows": shard.num_rows,
                "column_offset": shard.column_offset,
                "num_columns": shard.num_columns,
                "tier": shard.tier.label,
            }
            for shard in placed.shards
        ],
    }
