"""What a plan rests on: versions, and the assumptions that concern it."""

from importlib.metadata import PackageNotFoundError, version

from planner.domain.plan.plan import Assumption

_HARDWARE = "hardware."
_DISTRIBUTIONS = ("shardplan", "ortools", "numpy")


def versions() -> dict[str, str]:
    """Return the version of each distribution that can change a plan."""
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree that is not installed
            found[name] = "uninstalled"
    return found


def used_assumptions(assumptions: tuple[Assumption, ...], hardware_numbers: frozenset[str]) -> tuple[Assumption, ...]:
    """Leave out the hardware numbers that no price and no capacity of the plan rests on."""
    return tuple(
        item
        for item in assumptions
        if item.evidence == "default"
        or not item.subject.startswith(_HARDWARE)
        or item.subject.removeprefix(_HARDWARE) in hardware_numbers
    )
