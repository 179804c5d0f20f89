"""The way out that a shortfall states: only changes that a diagnosis has solved."""

from collections.abc import Sequence
from dataclasses import replace

from cost_models.vocabulary import Tier
from planner.domain.plan.diagnosis import Diagnosis
from planner.domain.plan.plan import Shortfall

_MOST_NAMED = 3
#: Of resources other than these a shortfall says itself what to change, which no diagnosis tries.
_TRIED = (*(tier.label for tier in Tier), "constraints")


def with_solved_hints(shortfalls: Sequence[Shortfall], diagnosis: Diagnosis) -> tuple[Shortfall, ...]:
    """Return shortfalls whose hints are the fixes of a diagnosis, or say that none of the changes tried gives a plan.

    Advice that was not solved may be wrong: more ranks do not help if buffers grow with them, nor more memory if a
    constraint rules out every cut that would fit.
    """
    if diagnosis.fixes:
        hint = "; or ".join(fix.message for fix in diagnosis.fixes[:_MOST_NAMED])
    else:
        hint = "none of the changes tried gives a plan: constraints, the reservation, memory, ranks, smaller tables"
    return tuple(
        replace(short, hint=hint) if diagnosis.fixes or short.resource in _TRIED else short for short in shortfalls
    )
