"""Changes of single fields of a document by dotted paths, such as ``model.tables.*.data_type``.

Items of lists are meant by number, by name, or all of them by ``*``.
"""

from collections.abc import Sequence
from typing import Any

from cost_models.text.read_number import whole_number

ALL_ITEMS = "*"
_MOST_NAMED = 10


class UnknownPlace(ValueError):
    """A path leads to no place of a document; the message is for people."""


def with_field(document: Any, path: Sequence[str], value: object) -> Any:
    """Return a document with a field set; objects on the way to it that are missing or null are made.

    What lies off the way is shared with the given document, which stays unchanged: a spec may have thousands of tables,
    and many points.

    Raises
    ------
    UnknownPlace
        An item of a list does not exist, or a part of the path is no object and no list.
    """
    return _with(document, path, 0, value)


def _with(target: Any, path: Sequence[str], position: int, value: object) -> Any:
    places = _places(target, path, position)
    changed = dict(target) if isinstance(target, dict) else list(target)
    for place in places:
        if position == len(path) - 1:
            changed[place] = value
            continue
        inner = target.get(place) if isinstance(target, dict) else target[place]
        changed[place] = _with({} if inner is None and isinstance(target, dict) else inner, path, position + 1, value)
    return changed


def _places(target: object, path: Sequence[str], position: int) -> list[Any]:
    """Return the key, or the indices by number or by name, that a part of a path stands for."""
    part, problem = path[position], f"cannot set {'.'.join(path)}"
    if isinstance(target, dict):
        return [part]
    if not isinstance(target, list):
        raise UnknownPlace(f"{problem}: {path[position - 1]} is not an object, nor a list")
    if part == ALL_ITEMS:
        return list(range(len(target)))
    if (index := whole_number(part)) is not None and 0 <= index < len(target):
        return [index]
    named = [index for index, item in enumerate(target) if isinstance(item, dict) and item.get("name") == part]
    if len(named) > 1:
        places = ", ".join(str(index) for index in named[:_MOST_NAMED])
        raise UnknownPlace(
            f"{problem}: {len(named)} items of {path[position - 1]} have this name; use a number: {places}"
        )
    if named:
        return named
    known = f"0 to {len(target) - 1}, a name, or {ALL_ITEMS} for all" if target else "none, for it is empty"
    raise UnknownPlace(f"{problem}: {path[position - 1]} has no item {part}; items are {known}")
