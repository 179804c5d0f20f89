"""The laws that ship with the package, by name."""

import functools
import json
from importlib.resources import files

from cost_models.hardware.laws.document import parse_laws
from cost_models.hardware.laws.law_set import LawSet

_FOLDER = files("cost_models") / "hardware" / "laws" / "sets"


def law_set_names() -> tuple[str, ...]:
    """Return the names of all laws that ship, sorted."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@functools.lru_cache(maxsize=64)
def load_law_set(name: str) -> LawSet:
    """Return the laws of this name; raises ``KeyError`` where none ship."""
    if name not in law_set_names():
        raise KeyError(name)
    return parse_laws(json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8")))
