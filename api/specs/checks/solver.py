"""Rules of the search: its limits, where it begins, and the value that it gives up at."""

from collections.abc import Iterator

from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.protocol import AssignmentModel
from cost_models.text.number_text import counted
from planner.domain.plan.plan import Assumption
from planner.errors import Issue
from planner.orchestration.placement.renamed import named_as_in

_HINT = "docs/spec.md and /docs describe every field"
_WARM_START, _CUTOFF = "/solver/warm_start", "/solver/cutoff_seconds"


def check_solver(state: SpecState, issues: IssueCollector) -> None:
    """Report settings of the solver that contradict each other, or that the rest of the spec has no use for."""
    _check_work_limit(state, issues)
    _check_cutoff(state, issues)
    if state.spec.solver.warm_start is not None and state.spec.previous_plan is not None:
        issues.report(
            _WARM_START,
            "the search begins at previous_plan already",
            "leave solver.warm_start out; or leave previous_plan out, and moves have no price",
            reads=("/previous_plan",),
        )


def _check_work_limit(state: SpecState, issues: IssueCollector) -> None:
    solver = state.spec.solver
    if solver.work_limit_seconds is None:
        return
    if not solver.reproducible:
        message = "work_limit_seconds is for reproducible solves: leave it out, or set reproducible"
        issues.report("/solver", message, _HINT, reads=("/solver/reproducible",))
    elif solver.work_limit_seconds > solver.time_limit_seconds:
        message = (
            f"work_limit_seconds {solver.work_limit_seconds:g} exceeds time_limit_seconds"
            f" {solver.time_limit_seconds:g}: lower it, or raise the time limit"
        )
        issues.report("/solver", message, _HINT, reads=("/solver/time_limit_seconds",))


def _check_cutoff(state: SpecState, issues: IssueCollector) -> None:
    if state.spec.solver.cutoff_seconds is None:
        return
    if state.model is not None and isinstance(state.model.model, AssignmentModel):
        issues.report(
            _CUTOFF,
            f"the cost model {state.spec.cost_model} prices ranks as a whole: of its plans no lower bound is known that"
            " could reach a cutoff",
            "use an analytic cost model, or leave cutoff_seconds out",
            reads=("/cost_model",),
        )
    if state.spec.objectives is not None:
        issues.report(
            _CUTOFF,
            "a cutoff is a value of the objective alone, and the spec has objectives in an order",
            "leave objectives out, or leave cutoff_seconds out",
            reads=("/objectives",),
        )


def warm_start_warnings(state: SpecState) -> Iterator[Issue]:
    """Warn of what had to be assumed to read the plan that searches begin at, and of a plan of other tables."""
    if state.warm_start is None:
        return
    yield from state.warm_start.warnings
    if not _num_common_tables(state):
        yield Issue(
            code="no-common-table",
            pointer=_WARM_START,
            message="no table of the plan has the name of a table of this spec: the search begins without it",
            hint="check that it is a plan of this model",
            severity="warning",
        )


def warm_start_assumptions(state: SpecState) -> Iterator[Assumption]:
    """Say which plan the search begins at, and how many of the tables it has."""
    if state.warm_start is None or state.problem is None:
        return
    num_tables, placement = len(state.problem.tables), state.warm_start.placement
    which = f"plan {state.warm_start.digest}" if state.warm_start.digest else "plan"
    yield Assumption(
        subject="solver.warm_start",
        value=f"the search began at the {which} of {counted(placement.world_size, 'rank')}, which has"
        f" {_num_common_tables(state)} of {counted(num_tables, 'table')}",
        evidence="note",
    )


def _num_common_tables(state: SpecState) -> int:
    assert state.warm_start is not None
    assert state.problem is not None
    placement = named_as_in(state.problem, state.warm_start.placement)
    return len({placed.name for placed in placement.tables} & {table.name for table in state.problem.tables})
