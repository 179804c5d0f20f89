"""Tables that a runtime holds in one operator, and what those must not differ in."""

from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from planner.options.runtimes.registry import RUNTIMES


def check_shared_operators(state: SpecState, issues: IssueCollector) -> None:
    """Report tables that differ in what one operator has once."""
    if not issues.is_sound("/runtime"):
        return
    runtime = RUNTIMES[state.spec.runtime]
    for found in runtime.operator_issues(state.tables):
        issues.report(
            f"{found.where}/{found.field}",
            f"table {quoted(found.name)} {found.message}",
            found.hint,
            reads=(f"{found.where}/module_path",),
        )
