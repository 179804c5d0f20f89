"""What became of a point: of the plan or the answer of its solve."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from api.services.studies.rules.base import COMPARED, FAILED, INFEASIBLE, INVALID, NO_PLAN, PLANNED, PointOutcome
from api.services.studies.rules.comparison import Compared
from api.services.studies.rules.figures import Figures, Machines, figures_of
from planner.errors import Issue
from planner.solver.problem import Reason

_MOST_ISSUES = 5


def outcome_of_plan(plan: Mapping[str, Any], machines: Machines) -> PointOutcome:
    """Return the outcome of a point that has a plan, as a document in either form."""
    found, at_best = figures_of(plan, machines)
    objective = plan["objective"]
    return PointOutcome(
        state=PLANNED,
        plan_digest=plan["plan_digest"],
        objective_seconds=objective["seconds"],
        lower_bound_seconds=objective["lower_bound_seconds"],
        relative_gap=objective["relative_gap"],
        limit=plan["termination"]["limit"],
        figures=found,
        at_best=at_best,
    )


def outcome_of_comparison(compared: Mapping[str, Any]) -> PointOutcome:
    """Return the outcome of a point that compares plans, of what its process answered."""
    return PointOutcome(state=COMPARED, compared=Compared(**compared))


def outcome_without_plan(
    reason: str, limit: str | None, detail: str, shortfalls: Sequence[Mapping[str, Any]]
) -> PointOutcome:
    """Return the outcome of a point whose solve ended without a plan."""
    issues = [_issue(str(one["message"]), str(one.get("hint", ""))) for one in shortfalls[:_MOST_ISSUES]]
    state = INFEASIBLE if reason == Reason.INFEASIBLE else NO_PLAN
    return PointOutcome(state=state, limit=limit, issues=issues or [_issue(detail)])


def outcome_of_issues(issues: Sequence[Issue]) -> PointOutcome:
    """Return the outcome of a point whose spec is refused."""
    shown = [{"pointer": one.pointer, "message": one.message, "hint": one.hint} for one in issues[:_MOST_ISSUES]]
    return PointOutcome(state=INVALID, issues=shown)


def impossible(message: str) -> PointOutcome:
    """Return the outcome of a point that has no spec."""
    return PointOutcome(state=INVALID, issues=[_issue(message)])


def failed(message: str, hint: str = "", *, state: str = FAILED) -> PointOutcome:
    """Return the outcome of a point whose solve failed or was cancelled."""
    return PointOutcome(state=state, issues=[_issue(message, hint)])


def to_json(outcome: PointOutcome) -> dict[str, Any]:
    """Return an outcome as JSON, without what is not known."""
    return {key: value for key, value in asdict(outcome).items() if value is not None and value != ()}


def of_json(document: Mapping[str, Any]) -> PointOutcome:
    """Return what ``to_json`` made a document of."""
    known = {one.name for one in fields(PointOutcome)}
    values = {key: value for key, value in document.items() if key in known}
    for name in ("figures", "at_best"):
        if values.get(name) is not None:
            values[name] = Figures(**values[name])
    if values.get("compared") is not None:
        values["compared"] = Compared(**values["compared"])
    return PointOutcome(**values)


def _issue(message: str, hint: str = "") -> dict[str, str]:
    return {"pointer": "", "message": message, "hint": hint}
