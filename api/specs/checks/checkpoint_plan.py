"""Whether a job can start from a checkpoint of another plan: tables that cannot be as they must be here."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from api.specs.assumptions import shown_names
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.text.number_text import counted
from cost_models.vocabulary import Scheme
from planner.domain.plan.plan import Assumption
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.options.enumerate import SchemeIssue, enumerate_families
from planner.options.loadable_layouts import LoadableLayout, has_shape_of, loadable_layouts

#: Runtimes of which it is known what they load: those that store tables as TorchRec does.
RUNTIMES = ("torchrec", "torcheasyrec")


def check_checkpoint_plan(state: SpecState, issues: IssueCollector) -> None:
    """Report a runtime whose checkpoints are not known, and requests, which start from no optimizer state."""
    spec = state.spec
    if spec.checkpoint_plan is None or not issues.is_sound("/runtime"):
        return
    if spec.runtime not in RUNTIMES:
        known = " and ".join(RUNTIMES)
        message = f"what {spec.runtime} loads from a checkpoint of another plan is not known"
        issues.report("/checkpoint_plan", message, f"leave checkpoint_plan out; it is for the runtimes {known}")
    elif spec.serving is not None:
        issues.report("/checkpoint_plan", "a host that serves has no optimizer state", "leave checkpoint_plan out")


def check_loadable_tables(state: SpecState, issues: IssueCollector) -> None:
    """Report every table that can be sharded, and not so that what is asked for is kept."""
    if state.problem is None:
        return
    *_, problem = state.problem.of_each_group()  # the largest sharding group has most cuts
    if problem.checkpoint_plan is None or problem.runtime not in RUNTIMES:
        return
    without = enumerate_families(problem).scheme_issues
    if not without:
        return
    loadable, anyway = (
        loadable_layouts(problem),
        enumerate_families(replace(problem, checkpoint_plan=None)).scheme_issues,
    )
    where = {table.name: pointer for pointer, table in state.tables.items()}
    for index in without.keys() & loadable.keys() - anyway.keys():
        table = problem.tables[index]
        pinned = table.constraints.pinned is not None
        reasons = _reasons(without[index], set(Scheme) if pinned else loadable[index].schemes)
        issues.report(
            f"{where[table.name]}/constraints{'/pinned' if pinned else ''}",
            f'table "{table.name}" {_must_be(loadable[index])}: {"; ".join(reasons)}',
            "widen the constraints of the table, change the cluster"
            + (", set checkpoint_plan.keep to state" if problem.checkpoint_plan.keep == "schemes" else "")
            + ", or leave checkpoint_plan out and lose the state",
        )


def checkpoint_plan_warnings(problem: Problem) -> Iterator[Issue]:
    """Warn of tables that the checkpoint has in another shape: nothing of them is loaded."""
    if problem.checkpoint_plan is None:
        return
    before = {placed.name: placed for placed in problem.checkpoint_plan.placement.tables}
    known = [table for table in problem.tables if table.name in before]
    changed = [table.name for table in known if not has_shape_of(table, before[table.name])]
    if changed:
        yield Issue(
            code="checkpoint-table-changed",
            pointer="/checkpoint_plan",
            message=f"the checkpoint has {counted(len(changed), 'table')} with other rows or columns, which the runtime"
            f" refuses to load: {shown_names(changed)}",
            hint="leave them out of what is loaded, or give the model that wrote the checkpoint",
            severity="warning",
        )
    world_size = problem.checkpoint_plan.placement.world_size
    slots = [table.name for table in known if table.hash_table is not None]
    if slots and world_size % problem.world_size:  # slots are read by position, so that blocks of rows must join up
        yield Issue(
            code="checkpoint-slots-lost",
            pointer="/checkpoint_plan",
            message=f"{counted(len(slots), 'hash table')} of a checkpoint of {counted(world_size, 'rank')}, no"
            f" multiple of {problem.world_size}: blocks of slots do not join up, and ids lose the slots that they hold:"
            f" {shown_names(slots)}",
            hint="use a number of ranks that divides that of the checkpoint, or a loader that deals the ids out again;"
            " weights and optimizer state are read by slot",
            severity="warning",
        )
    if not known:
        yield Issue(
            code="no-common-table",
            pointer="/checkpoint_plan",
            message="no table of the checkpoint has the name of a table of this spec: nothing is loaded",
            hint="check that it is a plan of this model",
            severity="warning",
        )


def checkpoint_plan_assumptions(problem: Problem) -> Iterator[Assumption]:
    """Say how many tables start from the checkpoint; the plan was chosen among those that keep them."""
    if problem.checkpoint_plan is None:
        return
    num_loaded, num_tables = len(loadable_layouts(problem)), len(problem.tables)
    schemes = " and sharding types" if problem.checkpoint_plan.keep == "schemes" else ""
    new = f"; {num_tables - num_loaded} start without stored state" if num_loaded < num_tables else ""
    yield Assumption(
        subject="checkpoint_plan",
        value=f"{counted(num_loaded, 'table')} of {num_tables} keep weights, optimizer state{schemes}{new}; bound and"
        " gap are those of such plans",
        evidence="note",
    )


def _must_be(loadable: LoadableLayout) -> str:
    schemes = " or ".join(scheme.label for scheme in sorted(loadable.schemes)) or "a scheme that is not planned"
    cut = f" in pieces of {' + '.join(map(str, loadable.column_cut))} columns" if loadable.column_cut else ""
    return f"keeps what the checkpoint has of it as {schemes}{cut}"


def _reasons(issues: tuple[SchemeIssue, ...], among: Collection[Scheme]) -> list[str]:
    """Return why some schemes are no option, those with one reason together."""
    schemes: dict[str, list[str]] = {}
    for scheme, reason in issues:
        if scheme in among:
            schemes.setdefault(reason, []).append(scheme.label)
    return [f"{', '.join(labels)}: {reason}" for reason, labels in schemes.items()] or ["it is in one piece there"]
