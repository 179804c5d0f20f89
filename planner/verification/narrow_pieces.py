"""Pieces that are narrower than this planner cuts them of its own accord: legal, and seldom wise."""

from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.options.loadable_layouts import loadable_layouts
from planner.options.schemes.geometry import least_piece_columns

_MOST_NAMED = 3


def narrow_pieces(problem: Problem, placement: Placement) -> tuple[Issue, ...]:
    """Return one warning of all tables that a placement cuts below the least width, which the user did not ask for.

    A width that the user did ask for is a constraint, and a pinned table is where the user wants it; pieces of a
    checkpoint have to stay.
    """
    position = {placed.name: index for index, placed in enumerate(placement.tables)}
    found: list[tuple[int, str, int]] = []
    layouts = loadable_layouts(problem)
    for number, table in enumerate(problem.tables):
        asked = table.constraints.min_partition is not None or table.constraints.pinned is not None
        asked = asked or (number in layouts and layouts[number].column_cut != ())
        if asked or table.name not in position:
            continue
        index = position[table.name]
        columns = int(placement.tables[index].shards.num_columns.min(initial=table.embedding_dim))
        if columns < least_piece_columns(table):
            found.append((index, table.name, columns))
    if not found:
        return ()
    named = ", ".join(f'"{name}" ({columns} columns)' for _, name, columns in found[:_MOST_NAMED])
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return (
        Issue(
            code="narrow-pieces",
            pointer=f"/tables/{found[0][0]}",
            message=f"pieces are narrower than the planner cuts them by default: {named}{more}; bounds of plans do not"
            " hold for such cuts",
            hint="name the width in constraints.min_partition of the table, or plan again",
            severity="warning",
        ),
    )
