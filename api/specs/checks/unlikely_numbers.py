"""Numbers of the hardware that are far from what any has: probably slips of units."""

from collections.abc import Iterator

from api.schemas.spec import HardwareSpec
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import load_profile
from cost_models.hardware.usual_numbers import UsualRange, intended_value, is_unlikely, usual_range
from cost_models.text.number_text import digits_text
from cost_models.vocabulary import Tier
from planner.domain.formats.units import format_bytes, format_seconds
from planner.errors import Issue

_MEMORY = frozenset(f"{tier.label}_bytes" for tier in Tier)


def unlikely_numbers(spec: HardwareSpec) -> Iterator[Issue]:
    """Yield a warning for each override whose order of magnitude no hardware of the profile has."""
    for field, name, values, usual in _compared(spec):
        for value in values:
            if is_unlikely(value, usual):
                yield _warning(spec.profile, field, name, value, usual)
                break


def memory_slips(spec: HardwareSpec) -> list[Issue]:
    """Return the warnings of memory that is far less than any hardware has: likely causes where tables do not fit."""
    return [
        _warning(spec.profile, field, name, min(values), usual)
        for field, name, values, usual in _compared(spec)
        if name in _MEMORY and min(values) < usual.least and is_unlikely(min(values), usual)
    ]


def _compared(spec: HardwareSpec) -> Iterator[tuple[str, str, list[float], UsualRange]]:
    """Yield the overrides that are compared: field, name of the number, what is stated, what is usual."""
    stated = {name: (name, [value]) for name, value in spec.overrides.__pydantic_extra__.items()}
    if spec.overrides.hbm_bytes_by_rank is not None:
        stated["hbm_bytes_by_rank"] = "hbm_bytes", spec.overrides.hbm_bytes_by_rank
    for field, (name, values) in stated.items():
        if (usual := usual_range(spec.profile, name)) is not None:
            yield field, name, values, usual


def _warning(profile: str, field: str, name: str, value: float, usual: UsualRange) -> Issue:
    unit = FIELDS[name].unit.replace("_per_", " per ")
    number = load_profile(profile).numbers.get(name)
    if number is not None and number.value:
        has = f"the profile {profile} has {_number_text(name, usual.least)}"
    else:
        has = f"all profiles have {_number_text(name, usual.least)} to {_number_text(name, usual.most)}"
    message = f"{field} is {value:g} {unit}, and {has}"
    intended = intended_value(value, usual)
    if intended is None:
        hint = f"give the number in {unit}, or leave {field} out"
    else:
        hint = f"if {_number_text(name, intended)} is meant, write {digits_text(intended)}: the unit is {unit}"
    return Issue(
        code="unlikely-number",
        pointer=f"/hardware/overrides/{field}",
        message=message,
        hint=hint,
        severity="warning",
    )


def _number_text(name: str, value: float) -> str:
    """Return a hardware number with its unit, as people read it."""
    unit = FIELDS[name].unit
    if unit == "bytes":
        return format_bytes(value)
    if unit == "bytes_per_second":
        return f"{format_bytes(value)}/s"
    return format_seconds(value) if unit == "seconds" else f"{value:g} {unit.replace('_per_', ' per ')}"
