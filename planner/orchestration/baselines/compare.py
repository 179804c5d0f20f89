"""Baselines of a plan: what TorchRec's planner would have made, the simplest plan, and the plan that runs now.

The first two are made of the same prices as the plan. All are scored and verified from their geometry, as the plan is.
"""

from dataclasses import replace

import numpy as np

from cost_models.analytic.additive import Additive
from cost_models.protocol import AssignmentModel, CostModel
from cost_models.vocabulary import Scheme
from planner.domain.plan.baseline import (
    ILLEGAL,
    LEGAL,
    NO_PLAN,
    NOT_MADE,
    PREVIOUS_PLAN,
    TABLE_WISE_BY_SIZE,
    TORCHREC_GREEDY,
    Baseline,
)
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.orchestration.baselines.torchrec_cuts import torchrec_families, torchrec_options
from planner.orchestration.baselines.torchrec_search import search
from planner.orchestration.placement.stash import NoStash, with_stash
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price
from planner.solver.problem import Assignment, SolverProblem
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify

#: Runtimes that TorchRec's planner plans for.
_TORCHREC_RUNTIMES = frozenset({"torchrec", "torcheasyrec", "dynamicemb", "generic"})
#: Tables in all proposals that are packed: about a second on one core.
MAX_PLACED_TABLES = 200_000


def with_baselines(plan: Plan, problem: Problem, cost_model: CostModel) -> Plan:
    """Return a plan of a problem with what it is compared with."""
    placement = plan.placement
    problem = problem.of_plan(placement.world_size, placement.kv_cache_bytes, use_index_dedup=placement.use_index_dedup)
    return replace(plan, baselines=(*_made_here(problem, cost_model), *_previous(plan)))


def _previous(plan: Plan) -> tuple[Baseline, ...]:
    moved = plan.movement
    if moved is None:
        return ()
    issue = moved.previous_issue
    state = ILLEGAL if issue else LEGAL
    return (Baseline(name=PREVIOUS_PLAN, state=state, objective_seconds=moved.previous_seconds, issue=issue),)


def _made_here(problem: Problem, cost_model: CostModel) -> tuple[Baseline, ...]:
    if any(table.constraints.pinned is not None for table in problem.tables):
        return tuple(_not_made(name, "the spec pins tables") for name in (TORCHREC_GREEDY, TABLE_WISE_BY_SIZE))
    families = torchrec_families(problem)
    if not families.families:
        return ()
    additive = Additive(model=cost_model) if isinstance(cost_model, AssignmentModel) else cost_model
    priced = price(problem, families, additive)
    baselines = _Baselines(problem, cost_model, families, priced)
    return (baselines.torchrec_greedy(), baselines.table_wise_by_size())


class _Baselines:
    """Makes baselines of a problem from one list of priced cuts."""

    def __init__(self, problem: Problem, cost_model: CostModel, families: Families, priced: SolverProblem) -> None:
        self._problem, self._cost_model, self._families, self._priced = problem, cost_model, families, priced

    def torchrec_greedy(self) -> Baseline:
        """Return the plan of TorchRec's default proposers and packing, re-made."""
        problem = self._problem
        if problem.runtime not in _TORCHREC_RUNTIMES or problem.serving is not None:
            return _not_made(TORCHREC_GREEDY, "TorchRec's planner plans training with TorchRec alone")
        options = torchrec_options(problem, self._families, self._priced)
        if (without := self._first_without([bool(listed) for listed in options.tables])) is not None:
            return _not_made(TORCHREC_GREEDY, f'table "{without}" has no cut that TorchRec lists')
        found = search(options.tables, options.cluster, max_placed_tables=MAX_PLACED_TABLES)
        if found.is_cut:
            return _not_made(TORCHREC_GREEDY, f"to try more than {found.num_proposals:,} proposals takes too long")
        if not found.chosen_option:
            return _no_plan(TORCHREC_GREEDY, f"none of its {found.num_proposals:,} proposals fits in device memory")
        assignment = options.assignment(found.chosen_option, found.shard_ranks, self._priced)
        detail = f"the best of {found.num_proposals:,} proposals, from {found.proposer}"
        return self._scored(TORCHREC_GREEDY, assignment, detail)

    def table_wise_by_size(self) -> Baseline:
        """Return whole tables, the largest first, each on the rank with the fewest bytes so far."""
        priced, families = self._priced, self._families.families
        shape_of = {one.table: index for index, one in enumerate(families) if one.scheme is Scheme.TABLE_WISE}
        tables = range(len(self._problem.tables))
        if (without := self._first_without([table in shape_of for table in tables])) is not None:
            return _not_made(TABLE_WISE_BY_SIZE, f'table "{without}" cannot be placed whole')
        shapes = np.array([shape_of[table] for table in tables], dtype=np.int64)
        held = priced.shape_bytes[shapes, self._problem.cluster.device_tier]
        taken = np.zeros(self._problem.world_size)
        sites = np.zeros(len(shapes), dtype=np.int64)
        for table in np.argsort(-held, kind="stable").tolist():
            sites[table] = np.argmin(taken)
            taken[sites[table]] += held[table]
        return self._scored(TABLE_WISE_BY_SIZE, Assignment(piece_shape=shapes, piece_site=sites), "")

    def _first_without(self, has_options: list[bool]) -> str | None:
        """Return the name of the first table that lacks an option."""
        named = zip(self._problem.tables, has_options, strict=True)
        return next((table.name for table, has_one in named if not has_one), None)

    def _scored(self, name: str, assignment: Assignment, detail: str) -> Baseline:
        """Verify and score a plan as any other."""
        problem = self._problem
        placement: Placement = to_placement(problem, self._families, self._priced, assignment)
        try:
            placement = with_stash(problem, placement)
        except NoStash:
            return _no_plan(name, "it does not fit in device memory, whatever is stashed")
        issues = verify(problem, placement)
        return Baseline(
            name=name,
            state=ILLEGAL if issues else LEGAL,
            objective_seconds=score(problem, placement, self._cost_model).objective_seconds,
            issue=issues[0].message if issues else "",
            detail=detail,
        )


def _no_plan(name: str, issue: str) -> Baseline:
    return Baseline(name=name, state=NO_PLAN, issue=issue)


def _not_made(name: str, issue: str) -> Baseline:
    return Baseline(name=name, state=NOT_MADE, issue=issue)
