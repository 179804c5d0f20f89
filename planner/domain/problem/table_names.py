"""Names of tables, which modules may share: what says which table of a model is meant."""

from collections import Counter
from collections.abc import Sequence


def unique_names(named: Sequence[tuple[str, str]]) -> list[str]:
    """Return a name for each (module path, name): ``PATH/NAME`` if several modules have a table of the name.

    A table of the model itself, whose path is empty, keeps its name.
    """
    counts = Counter(name for _, name in named)
    return [f"{path}/{name}" if path and counts[name] > 1 else name for path, name in named]


def name_in_module(path: str, name: str) -> str:
    """Return the name that a table has in its module."""
    return name.removeprefix(f"{path}/") if path else name
