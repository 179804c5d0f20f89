"""A placement from anywhere as a plan: with the model's facts, scored, and with no bound, for nothing was searched."""

from dataclasses import replace

from cost_models.protocol import CostModel
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Assumption, Plan
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.provenance import used_assumptions, versions

_DETAIL = "given, not searched for: how far it is from the best plan is not known"


def plan_of_placement(
    problem: Problem, placement: Placement, cost_model: CostModel, *, assumptions: tuple[Assumption, ...] = ()
) -> Plan:
    """Return a placement that has every cell of the problem's tables once as a plan, whatever other rules it breaks.

    Its tables come in the order of the problem, and say of the model what a plan says that was searched for: where
    they agree with such a plan in everything, so do the digests.
    """
    placed = {one.name: one for one in placement.tables}
    named = replace(placement, tables=tuple(_named(table, placed[table.name]) for table in problem.tables))
    evaluation = score(problem, named, cost_model)
    return Plan(
        placement=named,
        evaluation=evaluation,
        lower_bound_seconds=0.0,
        relative_gap=None,
        reason=Reason.FEASIBLE,
        limit=None,
        detail=_DETAIL,
        partitioner="given",
        solver_seconds=0.0,
        assumptions=used_assumptions(assumptions, evaluation.hardware_numbers),
        versions=versions(),
    )


def _named(table: Table, placed: TablePlacement) -> TablePlacement:
    return replace(
        placed,
        module_path=table.module_path,
        data_type=placed.data_type or table.data_type.name,
        pooling=table.pooling,
        hash_table_mode=table.hash_table_mode,
    )
