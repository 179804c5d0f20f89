"""Whether repeated ids are left out, as a choice like that of a size: 0 is without, 1 is with."""

from collections.abc import Sequence
from dataclasses import replace

from cost_models.protocol import CostModel
from planner.domain.plan.index_dedup import IndexDedupSetting
from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.orchestration.sizes.candidates import Candidate
from planner.orchestration.sizes.plan_sizes import Sizes
from planner.verification.evaluate_placement import score


def index_dedup_settings(problem: Problem, cost_model: CostModel) -> Sizes:
    """Return both settings of a problem that leaves them open."""

    def noted(plan: Plan, candidates: Sequence[Candidate]) -> Plan:
        """Return the plan with what deduplication saves, or would save, and what is known of each setting."""
        load = score(problem, plan.placement, cost_model).index_dedup
        settings = tuple(map(_as_considered, candidates))
        return replace(plan, evaluation=replace(plan.evaluation, index_dedup=load), index_dedup_settings=settings)

    return Sizes(
        noun="settings of use_index_dedup",
        problems={float(one.use_index_dedup is True): one for one in problem.of_each_choice()},
        is_nested=False,
        noted=noted,
    )


def _as_considered(one: Candidate) -> IndexDedupSetting:
    return IndexDedupSetting(
        use_index_dedup=one.problem.use_index_dedup is True,
        state=one.state,
        objective_seconds=None if one.plan is None else one.plan.evaluation.objective_seconds,
        lower_bound_seconds=one.known_bound_seconds,
        detail=one.detail,
    )
