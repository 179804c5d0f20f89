"""A plan that is judged against the spec of another model: one issue instead of one for each table."""

from collections.abc import Sequence

from api.specs.plans.document import SPEC_MISMATCH, GivenPlan
from cost_models.text.number_text import counted
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue

#: Fewer tables that differ are listed one by one, whatever their share.
_LEAST_DIFFERING = 4
_MOST_SHOWN = 3


def summarised(issues: Sequence[Issue], problem: Problem, plan: GivenPlan, *, spec_digest: str) -> tuple[Issue, ...]:
    """Return what a plan breaks, or one issue if most tables are in the spec alone, in the plan alone, or differ.

    Tables agree if they have the same name, rows and columns.
    """
    asked = {table.name: table for table in problem.tables}
    placed = {table.name: table for table in plan.placement.tables}
    common = asked.keys() & placed.keys()
    agreeing = sum(_agree(asked[name], placed[name]) for name in common)
    num_tables = len(asked.keys() | placed.keys())
    differing = num_tables - agreeing
    if differing < _LEAST_DIFFERING or 2 * differing <= num_tables or len(issues) <= _MOST_SHOWN:
        return tuple(issues)
    shown = [issue.message for issue in issues[:_MOST_SHOWN]]
    stated = plan.stated_spec_digest
    made_for = f", made for the spec {stated}" if stated not in (None, spec_digest) else ""
    return (
        Issue(
            code=SPEC_MISMATCH,
            pointer="/tables" if stated is None else "/spec_digest",
            message=(
                f"this is a plan of another spec{made_for}: the spec {spec_digest} has"
                f" {counted(len(asked), 'table')} and the plan {len(placed):,}; {len(common):,} have a name in common,"
                f" {agreeing:,} of them the same rows and columns. {counted(len(issues), 'rule')} would be broken, the"
                f" first {len(shown)}: {'; '.join(shown)}"
            ),
            hint="give the spec that the plan was made for, or plan again for this one",
        ),
    )


def _agree(table: Table, placed: TablePlacement) -> bool:
    """Whether a placed table reaches as far as the table of the spec."""
    shards = placed.shards
    if not len(shards):
        return False
    size = (int(shards.row_end.max()), int(shards.column_end.max()))
    return size == (table.num_embeddings, table.embedding_dim)
