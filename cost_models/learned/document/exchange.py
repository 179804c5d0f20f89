"""Curves of collectives as JSON documents, and back: what a hostile file may hold is refused by place and reason."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats
from cost_models.learned.exchange.curve import SCALARS, CollectiveKind, ExchangeCurve
from cost_models.measurements.schema import COLLECTIVES

DIRECTIONS = ("forward", "backward", "")
MOST_CURVES = 64
MOST_RAMPS = 2000
MOST_RANK_COUNTS = 64
MOST_BINS = 64
#: Larger numbers are no bytes, seconds or ranks of any machine, and overflow when they are multiplied.
LARGEST_NUMBER = 1e18


class InvalidExchange(ValueError):
    """A document of exchange curves breaks the rules; the text says where and how."""


def curve_document(kind: CollectiveKind, curve: ExchangeCurve) -> dict[str, object]:
    """Turn a curve into JSON values; an infinite ``high_bytes`` is null."""
    return {
        **kind._asdict(),
        "start_seconds": curve.start_seconds,
        "peer_seconds": curve.peer_seconds,
        "ramps": {
            "weights": curve.weights.tolist(),
            "low_bytes": curve.low_bytes.tolist(),
            "high_bytes": [high if math.isfinite(high) else None for high in curve.high_bytes.tolist()],
            "log_ranks": curve.log_ranks.tolist(),
            "seconds_per_byte": curve.seconds_per_byte.tolist(),
        },
        "skew": curve.skew.tolist(),
        "range": {
            "rank_counts": curve.rank_counts.tolist(),
            "least_bytes": curve.least_bytes,
            "most_bytes": curve.most_bytes,
        },
        "interval": {
            "bin_seconds": curve.bin_seconds.tolist(),
            "lower": curve.lower.tolist(),
            "upper": curve.upper.tolist(),
        },
        "num_rows": curve.num_rows,
    }


def parse_curve(document: object, place: str) -> tuple[CollectiveKind, ExchangeCurve]:
    """Turn one document into a curve; raises ``InvalidExchange``."""
    names = ("operation", "direction", "spans_hosts", "start_seconds", "peer_seconds", "ramps", "skew", "range")
    top = members(document, (*names, "interval", "num_rows"), place)
    operation, direction, spans_hosts = top["operation"], top["direction"], top["spans_hosts"]
    if operation not in COLLECTIVES:
        raise InvalidExchange(f"{place}.operation: expected one of {', '.join(COLLECTIVES)}.")
    if direction not in DIRECTIONS:
        raise InvalidExchange(f'{place}.direction: expected "forward", "backward" or "".')
    if not isinstance(spans_hosts, bool):
        raise InvalidExchange(f"{place}.spans_hosts: expected true or false.")
    ramps = members(
        top["ramps"], ("weights", "low_bytes", "high_bytes", "log_ranks", "seconds_per_byte"), f"{place}.ramps"
    )
    ranges = members(top["range"], ("rank_counts", "least_bytes", "most_bytes"), f"{place}.range")
    interval = members(top["interval"], ("bin_seconds", "lower", "upper"), f"{place}.interval")
    at = f"{place}.ramps"
    try:
        curve = ExchangeCurve(
            start_seconds=number(top["start_seconds"], f"{place}.start_seconds"),
            peer_seconds=number(top["peer_seconds"], f"{place}.peer_seconds"),
            weights=_rows(ramps["weights"], len(SCALARS), MOST_RAMPS, f"{at}.weights"),
            low_bytes=_numbers(ramps["low_bytes"], MOST_RAMPS, f"{at}.low_bytes"),
            high_bytes=_numbers(ramps["high_bytes"], MOST_RAMPS, f"{at}.high_bytes", null=math.inf),
            log_ranks=_numbers(ramps["log_ranks"], MOST_RAMPS, f"{at}.log_ranks"),
            seconds_per_byte=_numbers(ramps["seconds_per_byte"], MOST_RAMPS, f"{at}.seconds_per_byte"),
            skew=_numbers(top["skew"], 3, f"{place}.skew"),
            rank_counts=_counts(ranges["rank_counts"], f"{place}.range.rank_counts"),
            least_bytes=number(ranges["least_bytes"], f"{place}.range.least_bytes"),
            most_bytes=number(ranges["most_bytes"], f"{place}.range.most_bytes"),
            bin_seconds=(bins := _numbers(interval["bin_seconds"], MOST_BINS, f"{place}.interval.bin_seconds")),
            lower=_rows(interval["lower"], len(bins) + 1, MOST_RANK_COUNTS, f"{place}.interval.lower"),
            upper=_rows(interval["upper"], len(bins) + 1, MOST_RANK_COUNTS, f"{place}.interval.upper"),
            num_rows=_count(top["num_rows"], f"{place}.num_rows"),
        )
    except InvalidExchange:
        raise
    except ValueError as error:
        raise InvalidExchange(f"{place}: {error}") from error
    return CollectiveKind(operation, direction, spans_hosts), curve


def members(document: object, names: tuple[str, ...], place: str) -> Mapping[str, object]:
    """Return an object that has exactly these members."""
    if not isinstance(document, dict):
        raise InvalidExchange(f"{place}: expected an object.")
    if missing := [name for name in names if name not in document]:
        raise InvalidExchange(f"{place}: lacks {', '.join(missing)}.")
    if len(document) > len(names):
        raise InvalidExchange(f"{place}: has members beside {', '.join(names)}.")
    return document


def number(value: object, place: str) -> float:
    """Return a finite number of a size that machines have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidExchange(f"{place}: expected a number.")
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise InvalidExchange(f"{place}: expected a number of at most {LARGEST_NUMBER:g}.")
    return float(value)


def items(value: object, most: int, place: str) -> list[object]:
    """Return a list of at most ``most`` items."""
    if not isinstance(value, list):
        raise InvalidExchange(f"{place}: expected a list.")
    if len(value) > most:
        raise InvalidExchange(f"{place}: has {len(value)} items, more than {most}.")
    return value


def _numbers(value: object, most: int, place: str, *, null: float | None = None) -> Floats:
    """A list of numbers; ``null`` stands for an item that is null, where that is allowed."""
    found = [
        null if item is None and null is not None else number(item, f"{place}[{i}]")
        for i, item in enumerate(items(value, most, place))
    ]
    return np.array(found, dtype=np.float64)


def _rows(value: object, columns: int, most: int, place: str) -> Floats:
    """A list of lists of ``columns`` numbers each."""
    rows = [_numbers(row, columns, f"{place}[{i}]") for i, row in enumerate(items(value, most, place))]
    for i, row in enumerate(rows):
        if len(row) != columns:
            raise InvalidExchange(f"{place}[{i}]: has {len(row)} numbers, not {columns}.")
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)


def _count(value: object, place: str) -> int:
    found = number(value, place)
    if found != int(found):
        raise InvalidExchange(f"{place}: expected a whole number.")
    return int(found)


def _counts(value: object, place: str) -> NDArray[np.int64]:
    found = [_count(item, f"{place}[{i}]") for i, item in enumerate(items(value, MOST_RANK_COUNTS, place))]
    return np.array(found, dtype=np.int64)
