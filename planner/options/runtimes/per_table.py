"""What runtimes share that train fused shards and whole copies, and judge a placement table by table."""

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
    """Return an issue for each placed table at fault; tables that the problem lacks are told by
    ``planner.verification.verify``.
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
    return Kernel.DENSE if scheme is Scheme.DATA_PARALLEL else Kernel.FUSED


def kernel_issue(placed: TablePlacement) -> TableIssue | None:
    """Return what is wrong with the kernel of a table, of runtimes with one for each scheme."""
    scheme, kernel, fitting = placed.sharding_type, placed.compute_kernel, kernel_of(placed.sharding_type)
    return None if kernel is fitting else ("kernel", f"{scheme.label} runs with {fitting.label}, not {kernel.label}")
