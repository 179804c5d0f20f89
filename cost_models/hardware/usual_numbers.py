"""What hardware usually has: numbers far from it are slips of units, such as GB where bytes are asked for."""

import functools
import math
from typing import NamedTuple

from cost_models.hardware.profiles_loader import load_profile, profile_ids

#: GB for bytes, TB/s for bytes/s and the like are off by a thousand and more; changed hardware hardly ever is.
LEAST_FACTOR = 500.0
_UNIT_STEP = 1000.0
#: From a unit to another one: further away lies no slip.
_MOST_STEPS = 6


class UsualRange(NamedTuple):
    """The least and the most that a number is known to be, in the unit of its field."""

    least: float
    most: float


def usual_range(profile: str, name: str) -> UsualRange | None:
    """Return what a number is in a profile, or over all profiles if this one has none; ``None`` if no profile has one.

    A number of 0 says that there is none of it, and counts as no number. So does every number of a profile that does
    not ship.
    """
    number = load_profile(profile).numbers.get(name) if profile in profile_ids() else None
    if number is not None and number.value:
        return UsualRange(number.value, number.value)
    return _range_of_all().get(name)


def is_unlikely(value: float, usual: UsualRange) -> bool:
    """Whether a number is ``LEAST_FACTOR`` times beyond what is usual; 0 is likely enough."""
    return value > 0 and not usual.least / LEAST_FACTOR < value < usual.most * LEAST_FACTOR


def intended_value(value: float, usual: UsualRange) -> float | None:
    """Return what an unlikely number is in the larger or smaller unit that was probably meant.

    That is the number times a power of 1000: the one nearest to what is usual. ``None`` if even that is unlikely.
    """
    steps = round((math.log(usual.least * usual.most) / 2 - math.log(value)) / math.log(_UNIT_STEP))
    if abs(steps) > _MOST_STEPS:
        return None
    intended = value * _UNIT_STEP**steps if steps >= 0 else value / _UNIT_STEP**-steps  # 3.35 GB/s is a whole number
    return None if is_unlikely(intended, usual) else intended


@functools.cache
def _range_of_all() -> dict[str, UsualRange]:
    found: dict[str, UsualRange] = {}
    for profile in profile_ids():
        for name, number in load_profile(profile).numbers.items():
            if number.value:
                known = found.get(name, UsualRange(number.value, number.value))
                found[name] = UsualRange(min(known.least, number.value), max(known.most, number.value))
    return found
