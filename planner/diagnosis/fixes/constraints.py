"""Asking for less: a constraint in conflict widened to what a plan without it uses, or left out."""

from collections.abc import Sequence
from dataclasses import replace

from cost_models.text.number_text import number_ranges
from planner.diagnosis.constraints import (
    RESERVATION,
    TABLE_FIELDS,
    Constraint,
    all_data_types,
    constraints_of,
    with_only,
)
from planner.diagnosis.trial_solves import Attempts
from planner.domain.plan.diagnosis import ChangedValue, Fix, SpecChange, VerifiedPlan
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.registry import RUNTIMES

_KIND = "constraint"
_MOST_NAMED = 3


def relaxed(problem: Problem, constraint: Constraint, attempts: Attempts) -> Fix | None:
    """Return the least change of one constraint that gives a plan; ``None`` where even leaving it out gives none.

    Raises
    ------
    planner.diagnosis.trial_solves.OutOfWork
        Before it is known.
    """
    others = [other for other in constraints_of(problem) if other != constraint]
    found = attempts.solve(with_only(problem, others))
    if found.plan is None or found.placement is None:
        return None
    if constraint.field in TABLE_FIELDS and constraint.field != "pinned":
        wider = _widened(problem, constraint, found.placement.tables[constraint.index])
        again = attempts.solve(wider[0])
        if again.plan is not None:
            return Fix(kind=_KIND, message=wider[1], changes=(wider[2],), plan=again.plan)
    return left_out(problem, (constraint,), found.plan)


def left_out(problem: Problem, constraints: Sequence[Constraint], plan: VerifiedPlan) -> Fix:
    """Return the fix that leaves constraints out, with the plan that was found without them.

    Its changes may be made one after the other: entries of a list go from its end. The reservation is named first.
    """
    constraints = sorted(constraints, key=lambda one: one.field != RESERVATION)
    last_first = sorted(constraints, key=lambda one: (one.field, -one.index))
    more = f"; and {len(constraints) - _MOST_NAMED} more" if len(constraints) > _MOST_NAMED else ""
    return Fix(
        kind=_KIND,
        message="leave out: " + "; ".join(constraint.message for constraint in constraints[:_MOST_NAMED]) + more,
        changes=tuple(SpecChange(pointer=one.pointer, value=_value_without(problem, one)) for one in last_first),
        plan=plan,
    )


def _value_without(problem: Problem, constraint: Constraint) -> ChangedValue:
    """Return what a field becomes where its constraint is left out; ``None`` for none."""
    if constraint.field == RESERVATION:
        return 0.0
    return all_data_types(problem, problem.tables[constraint.index]) if constraint.field == "data_types" else None


def _widened(problem: Problem, constraint: Constraint, used: TablePlacement) -> tuple[Problem, str, SpecChange]:
    """Return the problem that also allows what a plan without the constraint used, in words and as a change."""
    table = problem.tables[constraint.index]
    wider, what, value = _allowing(table, constraint.field, used, problem)
    tables = list(problem.tables)
    tables[constraint.index] = replace(table, constraints=wider)
    change = SpecChange(pointer=constraint.pointer, value=value)
    return replace(problem, tables=tuple(tables)), f'{what} for table "{table.name}"', change


def _allowing(
    table: Table, field: str, used: TablePlacement, problem: Problem
) -> tuple[TableConstraints, str, ChangedValue]:
    """Return the constraints that allow the placement in one field, what that is in words, and the field's value."""
    asked = table.constraints
    ranks = frozenset(used.shards.rank.tolist())
    if field in ("sharding_types", "compute_kernels"):
        code, noun = (used.sharding_type, "") if field == "sharding_types" else (used.compute_kernel, "kernel ")
        codes = getattr(asked, field) | {code}
        labels = tuple(one.label for one in sorted(codes))
        return replace(asked, **{field: codes}), f"allow {noun}{code.label}", labels
    if field in ("ranks", "hosts"):
        needed = ranks if field == "ranks" else {problem.cluster.host_of(rank) for rank in ranks}
        wider = getattr(asked, field) | needed
        what = f"allow {field} {number_ranges(sorted(wider - getattr(asked, field)))}, too,"
        return replace(asked, **{field: wider}), what, tuple(sorted(wider))
    if field == "data_types":
        types = tuple(sorted({*(asked.data_types or ()), used.data_type}))
        return replace(asked, data_types=types), f"allow weights of {used.data_type}", types
    if field == "cache_load_factors":
        share = used.cache_load_factor
        before = () if RUNTIMES[problem.runtime].has_one_share(table) else asked.cache_load_factors or ()
        shares = tuple(sorted({*before, *([] if share is None else [share])}))
        what = f"allow caches of {', '.join(f'{one:g}' for one in shares)} of the rows"
        return replace(asked, cache_load_factors=shares), what, shares
    narrowest = int(used.shards.num_columns.min())
    return replace(asked, min_partition=narrowest), f"allow shards of {narrowest} columns", narrowest
