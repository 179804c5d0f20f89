"""What a model's document reports: held-out figures, and what it was fitted to. Checked, for pages show it."""

from collections.abc import Mapping

from cost_models.errors import InvalidModelFile
from cost_models.learned.document.fields import members
from cost_models.measurements.schema import KINDS

#: Pairs of measured and predicted seconds of one kind of rows, for a picture.
MOST_POINTS = 400
#: What groups of held-out rows are by.
GROUPINGS = ("all", "shards", "bytes", "ranks", "phase", "collective")
MOST_GROUPS = 200
MOST_NAMES = 100
MOST_CHARACTERS = 200
#: Names of groups are a fit's own words, and stand in narrow columns.
MOST_CHARACTERS_OF_GROUP = 80
LARGEST_NUMBER = 1e18
LARGEST_COUNT = 2**53
_SHARES = ("coverage",)
_NUMBERS = ("mean_relative_error", "median_relative_error", "mean_interval_ratio")
_GROUP = ("kind", "by", "group", "num_rows", *_NUMBERS, "rank_correlation", *_SHARES)
_TRAINED_ON = ("rows_digest", "rows", "launches", "libraries", "implementations", "seed", "repeats")


def checked_figures(value: object) -> Mapping[str, object]:
    """Return the figures of a document, ``{}`` if nothing was held out; raises ``InvalidModelFile``."""
    if value == {}:
        return {}
    top = members(value, ("split", "groups", "points_seconds"), "figures")
    _words(top["split"], "figures.split")
    for i, group in enumerate(_list(top["groups"], MOST_GROUPS, "figures.groups")):
        _check_group(group, f"figures.groups[{i}]")
    points = _object(top["points_seconds"], KINDS, "figures.points_seconds")
    for kind, pairs in points.items():
        place = f"figures.points_seconds.{kind}"
        for i, pair in enumerate(_list(pairs, MOST_POINTS, place)):
            if len(_list(pair, 2, f"{place}[{i}]")) != 2:
                raise InvalidModelFile(f"{place}[{i}]", "expected two numbers")
            for number in _list(pair, 2, f"{place}[{i}]"):
                _number(number, f"{place}[{i}]")
    return top


def checked_trained_on(value: object) -> Mapping[str, object]:
    """Return what a document says of its rows; raises ``InvalidModelFile``."""
    top = members(value, _TRAINED_ON, "trained_on")
    _text(top["rows_digest"], "trained_on.rows_digest")
    for name in ("libraries", "implementations"):
        for i, text in enumerate(_list(top[name], MOST_NAMES, f"trained_on.{name}")):
            _text(text, f"trained_on.{name}[{i}]")
    for kind, count in _object(top["rows"], KINDS, "trained_on.rows").items():
        _count(count, f"trained_on.rows.{kind}")
    for name in ("launches", "seed"):
        _count(top[name], f"trained_on.{name}")
    if top["repeats"] is not None:
        repeats = members(top["repeats"], ("launches", "mean_relative_difference"), "trained_on.repeats")
        _count(repeats["launches"], "trained_on.repeats.launches")
        _number(repeats["mean_relative_difference"], "trained_on.repeats.mean_relative_difference")
    return top


def _check_group(value: object, place: str) -> None:
    group = members(value, _GROUP, place)
    if group["kind"] not in KINDS:
        raise InvalidModelFile(f"{place}.kind", f"expected one of {', '.join(KINDS)}")
    if group["by"] not in GROUPINGS:
        raise InvalidModelFile(f"{place}.by", f"expected one of {', '.join(GROUPINGS)}")
    _words(group["group"], f"{place}.group")
    _count(group["num_rows"], f"{place}.num_rows")
    for name in _NUMBERS:
        _number(group[name], f"{place}.{name}")
    if group["rank_correlation"] is not None:
        _number(group["rank_correlation"], f"{place}.rank_correlation", least=-1.0, most=1.0)
    for name in _SHARES:
        _number(group[name], f"{place}.{name}", most=1.0)


def _text(value: object, place: str) -> None:
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS or not value.isprintable():
        raise InvalidModelFile(place, f"expected a printable text of at most {MOST_CHARACTERS} characters")


def _words(value: object, place: str) -> None:
    is_text = isinstance(value, str) and value.isascii() and value.isprintable()
    if not is_text or not 1 <= len(value) <= MOST_CHARACTERS_OF_GROUP:  # type: ignore[arg-type]
        raise InvalidModelFile(place, f"expected 1 to {MOST_CHARACTERS_OF_GROUP} printable ASCII characters")


def _number(value: object, place: str, *, least: float = 0.0, most: float = LARGEST_NUMBER) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # type: ignore[operator]
        raise InvalidModelFile(place, f"expected a number from {least:g} to {most:g}")


def _count(value: object, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT:
        raise InvalidModelFile(place, f"expected a whole number from 0 to {LARGEST_COUNT}")


def _list(value: object, most: int, place: str) -> list[object]:
    if not isinstance(value, list) or len(value) > most:
        raise InvalidModelFile(place, f"expected a list of at most {most}")
    return value


def _object(value: object, names: tuple[str, ...], place: str) -> Mapping[str, object]:
    if not isinstance(value, dict) or not value.keys() <= set(names):
        raise InvalidModelFile(place, f"expected an object with members among {', '.join(names)}")
    return value
