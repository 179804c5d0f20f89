"""A plan's placement as indices of the solver problem, so that it can be compared with what else was possible.

Needs the problem and the placement alone: plans are explained long after their search, from the spec.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.protocol import CostModel
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.errors import Issue, UnsupportedRequest
from planner.options.enumerate import Families, enumerate_families, with_narrowest_pieces
from planner.options.host_memory_fallback import with_kernels_of
from planner.options.schemes.blocks import COLUMN_STEP
from planner.orchestration.placement.from_placement import Pieces, families_like, pieces_of
from planner.pricing.price_options import price
from planner.solver.problem import Assignment, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPlan:
    """A problem with all its families, priced, and the assignment that one plan is."""

    problem: Problem
    families: Families
    priced: SolverProblem
    assignment: Assignment


def find_plan(problem: Problem, placement: Placement, cost_model: CostModel) -> ListedPlan:
    """List and price all families of ``problem``, and find the ones that ``placement`` has.

    The placement must name every table once. Tables with narrower pieces than are listed by
    default are listed with the narrowest pieces allowed, as the search does where nothing else fits.

    Raises
    ------
    UnsupportedRequest
        If a table is cut in a way that is not listed for it.
    """
    position = {table.name: index for index, table in enumerate(placement.tables)}
    placed = [placement.tables[position[table.name]] for table in problem.tables]
    problem = with_kernels_of(problem, placement)
    families = enumerate_families(problem)
    found, missing = _find(problem, families, placed)
    if missing:
        problem = with_narrowest_pieces(problem, missing)
        families = enumerate_families(problem)
        found, missing = _find(problem, families, placed)
    if missing:
        name = problem.tables[missing[0]].name
        raise _unlisted(name, position[name])
    priced = price(problem, families, cost_model)
    pieces = np.array([(family, *piece) for family, of_table in found for piece in of_table], dtype=np.int64)
    narrowest = np.array([one.widths.columns[0] for one in families.families], dtype=np.int64)[pieces[:, 0]]
    return ListedPlan(
        problem=problem,
        families=families,
        priced=priced,
        assignment=Assignment(
            piece_shape=priced.shapes_of_family[0][pieces[:, 0]] + (pieces[:, 1] - narrowest) // COLUMN_STEP,
            piece_site=pieces[:, 2].copy(),
        ),
    )


def _find(
    problem: Problem, families: Families, placed: list[TablePlacement]
) -> tuple[list[tuple[int, Pieces]], list[int]]:
    """Return family and pieces of every table, and the tables that are nothing that is listed for them."""
    found: list[tuple[int, Pieces]] = []
    missing: list[int] = []
    for table, (one, family) in enumerate(zip(placed, families_like(problem, families, placed), strict=True)):
        pieces = None if family is None else pieces_of(problem, families.families[family], one)
        if family is None or pieces is None:
            missing.append(table)
        else:
            found.append((family, pieces))
    return found, missing


def _unlisted(name: str, index: int) -> UnsupportedRequest:
    return UnsupportedRequest(
        Issue(
            code="unlisted-cut",
            pointer=f"/tables/{index}",
            message=f'table "{name}" is cut in a way that this version does not list for it',
            hint="plan again with this version, or judge the plan with plans:evaluate",
        )
    )
