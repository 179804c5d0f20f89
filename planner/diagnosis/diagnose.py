"""Why a problem has no plan and what would give it one, from a bounded number of short solves.

First the conflict: constraints of the user that leave no plan together, none of which can be spared. Then fixes, in
the order of how little they change: a slip of units corrected, one constraint of the conflict wider or gone, less
memory reserved, more memory, more ranks, smaller tables; where no constraint suffices alone, hardware and constraints
together. Only what was solved, and whose plan was verified, is offered. Where all ranks together are known to be
short, more ranks and more memory are looked for before the conflict: they take few solves, and one among the
constraints of hundreds of tables takes all that there are.
"""

from collections.abc import Sequence

from planner.diagnosis.combined import combined_fixes
from planner.diagnosis.fixes.ladder import Ladder, lowest_fix
from planner.diagnosis.fixes.memory import memory_ladder, reservation_ladder
from planner.diagnosis.fixes.pods import pods_ladder
from planner.diagnosis.fixes.ranks import hosts_ladder, ranks_ladder
from planner.diagnosis.fixes.tables import table_ladders
from planner.diagnosis.fixes.unit_slips import unit_slip_ladder
from planner.diagnosis.subsets import Subsets, constraint_fixes, is_one_kind
from planner.diagnosis.trial_solves import Attempts
from planner.domain.plan.diagnosis import Diagnosis, Fix
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem

#: Parts of the work that is left, at most, for hardware that is known to be short, for the conflict and for its fixes.
_HARDWARE = 0.35
_CONFLICT = 0.4
_RELAXED = 0.4  # of what is left then
_OF_HARDWARE = ("ranks", "memory")  # kinds of ladders, those first that take fewer solves


def diagnose(
    problem: Problem, shortfalls: Sequence[Shortfall], attempts: Attempts, *, is_proven: bool = False
) -> Diagnosis:
    """Diagnose a problem for which no plan was found, or where ``is_proven`` none exists.

    ``shortfalls`` say what is known to be short.
    """
    subsets = Subsets(problem, attempts, is_proven=is_proven)
    ladders = _ladders(problem, shortfalls)
    climbed = _climbed_first(ladders, shortfalls, attempts)
    attempts.allow(_CONFLICT)
    found = subsets.conflict(shortfalls)
    attempts.allow(_RELAXED)
    fixes = constraint_fixes(problem, found, subsets, attempts)
    needs_more = not is_one_kind(fixes)
    for index, ladder in enumerate(ladders):
        attempts.allow(1 / (len(ladders) - index + needs_more))
        fix = climbed[index] if index in climbed else lowest_fix(ladder, attempts)
        if fix is not None and all(fix.changes != known.changes for known in fixes):
            fixes.append(fix)
    if needs_more:
        attempts.allow(1.0)
        fixes += combined_fixes(problem, found, attempts)
    return Diagnosis(
        conflict=subsets.described(found),
        has_plan_without_constraints=subsets.has_plan_without_any,
        fixes=_smallest_first(fixes),
        num_solves=attempts.num_solves,
        limit=attempts.limit,
    )


def _smallest_first(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """Order fixes by how many changes they are, without those that contain another.

    Constraints of several kinds are no fix where one kind is enough. Memory for the constraints as they are comes last
    if fewer constraints and other hardware give a plan, too: accelerators with more memory are rarely available.
    """
    one_kind = [fix for fix in fixes if fix.kind != "constraint" or is_one_kind([fix])]
    chosen = one_kind if is_one_kind(fixes) else fixes
    least = [fix for fix in chosen if not any(set(other.changes) < set(fix.changes) for other in chosen)]
    is_combined = any(fix.kind == "combined" for fix in least)
    return tuple(sorted(least, key=lambda fix: (is_combined and fix.kind == "memory", len(fix.changes))))


def _ladders(problem: Problem, shortfalls: Sequence[Shortfall]) -> list[Ladder]:
    possible = [
        unit_slip_ladder(problem),
        reservation_ladder(problem) if problem.reservation.hbm_fraction > 0 else None,
        memory_ladder(problem, shortfalls),
        ranks_ladder(problem, shortfalls),
        hosts_ladder(problem, shortfalls),
        pods_ladder(problem),
        *table_ladders(problem, shortfalls),
    ]
    return [ladder for ladder in possible if ladder is not None]


def _climbed_first(ladders: Sequence[Ladder], shortfalls: Sequence[Shortfall], attempts: Attempts) -> dict[int, Fix]:
    """Return fixes by more hardware, by the ladder's index; none where not all ranks together are short of memory."""
    if not any(short.scope == "cluster" and short.required_bytes > short.available_bytes for short in shortfalls):
        return {}
    hardware = [index for index, ladder in enumerate(ladders) if ladder.kind in _OF_HARDWARE and ladder.guess > 0]
    hardware.sort(key=lambda index: (ladders[index].num_steps > 1, _OF_HARDWARE.index(ladders[index].kind)))
    fixes: dict[int, Fix] = {}
    for place, index in enumerate(hardware):
        attempts.allow(_HARDWARE / (len(hardware) - place))
        if fix := lowest_fix(ladders[index], attempts):
            fixes[index] = fix
    return fixes
