"""Numbers of a cluster that are so far from its profile's that another unit was meant."""

from api.schemas.spec import SpecDocument
from cost_models.hardware import Hardware
from cost_models.profiles_loader import CUSTOM, load_profile
from planner.errors import Issue

#: GB for bytes, TB/s for bytes/s and the like are off by a thousand and more; changed hardware hardly ever is.
_LEAST_FACTOR = 500.0


def unlikely_numbers(spec: SpecDocument, hardware: Hardware, base: str) -> tuple[Issue, ...]:
    """Return a warning for each number whose order of magnitude no version of the profile's hardware has.

    A number of 0 says that there is none of it, which is likely enough.
    """
    if spec.hardware.profile == CUSTOM:
        return ()
    issues = []
    of_profile = load_profile(spec.hardware.profile).numbers
    for name in spec.hardware.overrides.__pydantic_extra__:
        if name not in of_profile or not of_profile[name].value or not hardware.numbers[name].value:
            continue
        given, usual = hardware.numbers[name].value, of_profile[name].value
        if max(given / usual, usual / given) >= _LEAST_FACTOR:
            unit = of_profile[name].unit.replace("_per_", " per ")
            issues.append(
                Issue(
                    code="unlikely-number",
                    pointer=f"{base}/hardware/overrides/{name}",
                    message=f"{name} is {given:g}, and the profile {spec.hardware.profile} has {usual:g}: in {unit}",
                    hint=f"give it in {unit}, or leave it out for the number of the profile",
                    severity="warning",
                )
            )
    return tuple(issues)
