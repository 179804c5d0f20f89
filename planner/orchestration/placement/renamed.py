"""Plans of another time, with their tables named as in the problem.

A plan names the module of a table only if several modules have its name, and a model may have gained or lost one.
"""

from dataclasses import replace

from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.checkpoint_plan import CheckpointPlan
from planner.domain.problem.problem import Problem
from planner.domain.problem.table_names import name_in_module


def named_as_in(problem: Problem, placement: Placement) -> Placement:
    """Return a placement with the names of the problem; unchanged if two of its tables would have one name."""
    paths = {table.name: table.module_path for table in problem.tables}

    def name_of(placed: TablePlacement) -> str:
        path, name = placed.module_path, name_in_module(placed.module_path, placed.name)
        candidates = (placed.name, f"{path}/{name}", name)
        return next((one for one in candidates if one in paths and paths[one] in ("", path)), placed.name)

    tables = tuple(replace(placed, name=name_of(placed)) for placed in placement.tables)
    if len({placed.name for placed in tables}) < len(tables):
        return placement
    return replace(placement, tables=tables)


def with_checkpoint_plan(problem: Problem, plan: CheckpointPlan) -> Problem:
    """Return the problem of a job that starts from a checkpoint."""
    return replace(problem, checkpoint_plan=replace(plan, placement=named_as_in(problem, plan.placement)))
