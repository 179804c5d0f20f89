"""A ladder: one thing to change about a problem, in steps of which each changes more, and the lowest one that helps."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.diagnosis.trial_solves import Attempts, OutOfWork
from planner.domain.plan.diagnosis import Fix, SpecChange, VerifiedPlan
from planner.domain.problem.problem import Problem

SLACK = 1.02  # by which a packing is expected to miss the sum of its parts, for guesses
_MOST_SOLVES = 12  # of one ladder
#: Times the step before, while none helps: a good guess misses by little; then all the rest at once.
_STRIDES = (1.1, 1.25, 1.5, 2.0, *itertools.repeat(math.inf, _MOST_SOLVES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A changed problem, and what was changed."""

    problem: Problem
    message: str
    changes: tuple[SpecChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Steps 1 to ``num_steps``, made when they are asked for."""

    kind: str  # as in Fix
    num_steps: int
    step: Callable[[int], Step]
    #: a step that is likely to help, and not to be much higher than it must be; 0 where nothing is known
    guess: int = 0
    failing: int = 0  # steps up to this one are known not to help


def lowest_fix(ladder: Ladder, attempts: Attempts) -> Fix | None:
    """Return the lowest step that was solved as a fix, ``None`` if the top one was not."""
    found = lowest_step(ladder, attempts)
    if found is None:
        return None
    step, plan = found
    return Fix(kind=ladder.kind, message=step.message, changes=step.changes, plan=plan)


def lowest_step(ladder: Ladder, attempts: Attempts) -> tuple[Step, VerifiedPlan] | None:
    """Return the lowest step that was solved and its plan, ``None`` if the top one was not.

    Steps above the guess are tried in growing strides, those between one that failed and one
    that was solved by geometric bisection. Where the work runs out, the lowest step until then is the
    answer: a lower one might have been enough.
    """
    best: tuple[Step, VerifiedPlan] | None = None
    fails, most = ladder.failing, ladder.num_steps
    trial = min(max(ladder.guess, fails + 1), most) if ladder.guess else most
    try:
        for stride in _STRIDES[:_MOST_SOLVES]:
            step = ladder.step(trial)
            found = attempts.solve(step.problem)
            if found.plan is not None:
                best = step, found.plan
                most = trial
            else:
                fails = trial
            if fails == ladder.num_steps or (best is not None and most - fails == 1):
                break
            middle = math.isqrt((fails + 1) * most)
            higher = most if stride == math.inf else min(math.ceil(trial * stride), most)
            trial = higher if best is None else min(max(middle, fails + 1), most - 1)
    except OutOfWork:
        pass
    return best
