"""What runtimes share that train fused shards and whole copies, and check a placement table by table."""

from collections.abc import Callable

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue

#: Code and message of the first rule that a table breaks.
TableIssue = tuple[str, str]


def table_issues(
    problem: Problem, placement: Placement, issue_of: Callable[[Table, TablePlacement], TableIssue | None]
) -> list[Issue]:
    """Return the issue of each placed table that has one; ``planner.verification.verify`` reports tables that the
    problem lacks.
    """
    tables = {table.name: table for table in problem.tables}
    issues = []
    for index, placed in enumerate(placement.tables):
        table = tables.get(placed.name)
        issue = None if table is None else issue_of(table, placed)
        if issue is not None:
            code, message = issue
            issues.append(Issue(code=code, pointer=f"/tables/{index}", message=f'table "{placed.name}": {message}'))
    return issues


def kernel_of(scheme: Scheme) -> Kernel:
    """Return ``dense``, which stands for a copy whose gradients are all-reduced, or ``fused`` for everything else."""
    return Kernel.DENSE if scheme.is_replicated else Kernel.FUSED


def kernel_issue(placed: TablePlacement) -> TableIssue | None:
    """Return what is wrong with the kernel of a table, for runtimes with one kernel for each scheme."""
    scheme, kernel, runs = placed.sharding_type, placed.compute_kernel, kernel_of(placed.sharding_type)
    return None if kernel is runs else ("kernel", f"{scheme.label} runs with {runs.label}, not {kernel.label}")
