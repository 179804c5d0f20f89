"""Fixes of two kinds: more hardware, or less of it reserved, and fewer constraints, where neither suffices alone.

A cluster may have too few bytes for all tables while some constraint rules out every cut that would fit a larger one:
then more ranks give no plan, and neither does a wider constraint. The lowest step of each ladder is looked for with
fewer constraints, and on the hardware of that step as few of them change as have to.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from planner.diagnosis.constraints import RESERVATION, Constraint, constraints_of, with_only
from planner.diagnosis.fixes.ladder import Ladder, Step, lowest_step
from planner.diagnosis.fixes.memory import memory_ladder, reservation_ladder
from planner.diagnosis.fixes.ranks import hosts_ladder, ranks_ladder
from planner.diagnosis.subsets import Subsets, constraint_fixes, is_one_kind
from planner.diagnosis.trial_solves import Attempts, OutOfWork
from planner.domain.plan.diagnosis import Fix
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem

_MOST = 2  # fixes of each ladder


def combined_fixes(problem: Problem, conflict: Sequence[Constraint], attempts: Attempts) -> list[Fix]:
    """Return fixes that change hardware or the reservation and constraints together; none without constraints.

    Hardware is looked for without the constraints of the ``conflict``; if none gives a plan then, without any.
    """
    constraints = constraints_of(problem)
    in_conflict = [one for one in conflict if one.field != RESERVATION]
    others = [one for one in constraints if one not in in_conflict]
    reserved = [one for one in constraints if one.field == RESERVATION]
    fixes: list[Fix] = []
    with contextlib.suppress(OutOfWork):
        for left in (others, reserved) if in_conflict and others != reserved else (reserved,):
            if not fixes and len(left) < len(constraints):
                fixes = _on_other_hardware(problem, with_only(problem, left), attempts)
    return fixes


def _on_other_hardware(problem: Problem, free: Problem, attempts: Attempts) -> list[Fix]:
    """Return combined fixes whose hardware gives ``free``, which has fewer constraints, a plan; none if it has one.

    Raises
    ------
    planner.diagnosis.trial_solves.OutOfWork
        Before it is known whether it has.
    """
    as_it_is = attempts.solve(free)
    if as_it_is.plan is not None:
        return []  # constraints alone give a plan
    fixes: list[Fix] = []
    with contextlib.suppress(OutOfWork):
        for ladder in _ladders(problem, free, as_it_is.shortfalls):
            found = lowest_step(ladder, attempts)
            if found is not None:
                fixes += _with_fewer_constraints(problem, found[0], attempts)
    return fixes


def _ladders(problem: Problem, free: Problem, shortfalls: Sequence[Shortfall]) -> list[Ladder]:
    """List ladders of ``free``, those whose steps the pins and hosts of the problem allow, too."""
    possible = [
        reservation_ladder(free) if problem.reservation.hbm_fraction > 0 else None,
        ranks_ladder(free, shortfalls) if ranks_ladder(problem, ()) is not None else None,
        hosts_ladder(free, shortfalls) if hosts_ladder(problem, ()) is not None else None,
        memory_ladder(free, shortfalls),
    ]
    return [ladder for ladder in possible if ladder is not None]


def _with_fewer_constraints(problem: Problem, step: Step, attempts: Attempts) -> list[Fix]:
    """Return changes of constraints that give the hardware and the reservation of a step a plan, and those of the step.

    Raises
    ------
    planner.diagnosis.trial_solves.OutOfWork
        Before the first one is known.
    """
    changed = replace(problem, cluster=step.problem.cluster, reservation=step.problem.reservation)
    if attempts.solve(changed).plan is not None:
        return []  # a fix of one kind, which is found for itself
    subsets = Subsets(changed, attempts, is_proven=False)
    fixes = constraint_fixes(changed, subsets.conflict(()), subsets, attempts)
    chosen = [fix for fix in fixes if is_one_kind([fix])] or fixes
    return [
        replace(fix, kind="combined", message=f"{step.message}; and {fix.message}", changes=step.changes + fix.changes)
        for fix in chosen[:_MOST]
        if all(change.pointer not in {other.pointer for other in step.changes} for change in fix.changes)
    ]
