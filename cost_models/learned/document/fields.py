"""Reads values of a learned model's document; one of another form is an ``InvalidModelFile`` with its place."""

from collections.abc import Mapping

from cost_models.errors import InvalidModelFile

#: No fit arrives at larger numbers: they are no bytes, seconds or ranks of any machine, and overflow when multiplied.
LARGEST_NUMBER = 1e18


def members(document: object, names: tuple[str, ...], place: str) -> Mapping[str, object]:
    """Return an object that has exactly these members."""
    if not isinstance(document, dict):
        raise InvalidModelFile(place, "expected an object")
    if missing := [name for name in names if name not in document]:
        raise InvalidModelFile(place, f"lacks {', '.join(missing)}")
    if len(document) > len(names):
        raise InvalidModelFile(place, f"has members in addition to {', '.join(names)}")
    return document


def items(value: object, place: str, most: int | None = None) -> list[object]:
    """Return a list, of at most ``most`` items if that is given."""
    if not isinstance(value, list):
        raise InvalidModelFile(place, "expected a list")
    if most is not None and len(value) > most:
        raise InvalidModelFile(place, f"has {len(value)} items, more than {most}")
    return value


def number(value: object, place: str) -> float:
    """Return a finite number of a size that machines have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidModelFile(place, "expected a number")
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:  # false for NaN; whole numbers of any size compare
        raise InvalidModelFile(place, f"expected a finite number of at most {LARGEST_NUMBER:g}")
    return float(value)
