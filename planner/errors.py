"""What planning refuses.

    PlannerError
        InvalidProblem           one or more rules of the domain are broken (a list of Issue)
        UnsupportedRequest       a legal request for something that this version cannot do
        SolverDefect             a solver returned something that the checks reject: a bug

Infeasible is not here: it is an answer (see ``planner.solver.problem.Outcome``).
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing that is wrong with a request: what, where, the number, the way out."""

    code: str  # stable, kebab-case
    pointer: str  # JSON pointer into the document, "" for the whole of it
    message: str  # what is wrong, with the number
    hint: str = ""  # the way out
    severity: str = "error"  # or "warning"

    def below(self, base: str) -> "Issue":
        """Return the same of a document that stands at ``base`` of another one."""
        return replace(self, pointer=base + self.pointer)


class PlannerError(Exception):
    """Base of everything that planning raises on purpose."""

    code = "planner"


class InvalidProblem(PlannerError):
    """The request breaks rules of the domain; every broken rule is listed."""

    code = "invalid-problem"

    def __init__(self, issues: tuple[Issue, ...]) -> None:
        if not issues:
            raise ValueError("Expected at least one issue.")
        self.issues = issues
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        super().__init__(f"{issues[0].pointer}: {issues[0].message}{more}")


class UnsupportedRequest(PlannerError):
    """The request is well formed, but this version cannot do it."""

    code = "unsupported"

    def __init__(self, issue: Issue) -> None:
        self.issue = issue
        super().__init__(f"{issue.pointer}: {issue.message}")


class SolverDefect(PlannerError):
    """A partitioner returned something that the independent checks reject."""

    code = "solver-defect"
