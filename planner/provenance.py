"""Versions of what made a plan."""

from importlib.metadata import PackageNotFoundError, version

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
