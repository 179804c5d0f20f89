"""Curves of collectives as JSON documents, and back: what a hostile file may hold is rejected by place and reason."""

import math

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats
from cost_models.errors import InvalidModelFile
from cost_models.learned.document.fields import items, members, number
from cost_models.learned.exchange.curve import SCALARS, CollectiveKind, ExchangeCurve
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.measurements.schema import COLLECTIVES

DIRECTIONS = ("forward", "backward", "")
MOST_CURVES = 64
MOST_RAMPS = 2000
MOST_RANK_COUNTS = 64
MOST_BINS = 64
VERSION = 1


def exchange_document(exchange: LearnedExchange) -> dict[str, object]:
    """Return JSON values that :func:`parse_exchange` reads."""
    curves = [_curve_document(key, curve) for key, curve in sorted(exchange.curves.items())]
    return {"version": VERSION, "coverage": exchange.coverage, "curves": curves}


def parse_exchange(document: object) -> LearnedExchange:
    """Read the form of :func:`exchange_document`; raises ``InvalidModelFile``."""
    top = members(document, ("version", "coverage", "curves"), "exchange")
    if top["version"] != VERSION or isinstance(top["version"], bool):
        raise InvalidModelFile("exchange.version", f"expected {VERSION}")
    coverage = number(top["coverage"], "exchange.coverage")
    if not 0 < coverage < 1:
        raise InvalidModelFile("exchange.coverage", "expected a number between 0 and 1")
    curves: dict[CollectiveKind, ExchangeCurve] = {}
    for i, item in enumerate(items(top["curves"], "exchange.curves", MOST_CURVES)):
        key, curve = _parse_curve(item, f"exchange.curves[{i}]")
        if key in curves:
            raise InvalidModelFile(f"exchange.curves[{i}]", "a second curve of the same operation and direction")
        curves[key] = curve
    return LearnedExchange(curves=curves, coverage=coverage)


def _curve_document(kind: CollectiveKind, curve: ExchangeCurve) -> dict[str, object]:
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


def _parse_curve(document: object, place: str) -> tuple[CollectiveKind, ExchangeCurve]:
    """Turn one document into a curve."""
    names = ("operation", "direction", "spans_hosts", "start_seconds", "peer_seconds", "ramps", "skew", "range")
    top = members(document, (*names, "interval", "num_rows"), place)
    operation, direction, spans_hosts = top["operation"], top["direction"], top["spans_hosts"]
    if operation not in COLLECTIVES:
        raise InvalidModelFile(f"{place}.operation", f"expected one of {', '.join(COLLECTIVES)}")
    if direction not in DIRECTIONS:
        raise InvalidModelFile(f"{place}.direction", 'expected "forward", "backward" or ""')
    if not isinstance(spans_hosts, bool):
        raise InvalidModelFile(f"{place}.spans_hosts", "expected true or false")
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
    except ValueError as error:
        raise InvalidModelFile(place, str(error)) from error
    return CollectiveKind(operation, direction, spans_hosts), curve


def _numbers(value: object, most: int, place: str, *, null: float | None = None) -> Floats:
    """A list of numbers; ``null`` stands for an item that is null, where that is allowed."""
    found = [
        null if item is None and null is not None else number(item, f"{place}[{i}]")
        for i, item in enumerate(items(value, place, most))
    ]
    return np.array(found, dtype=np.float64)


def _rows(value: object, columns: int, most: int, place: str) -> Floats:
    """A list of lists of ``columns`` numbers each."""
    rows = [_numbers(row, columns, f"{place}[{i}]") for i, row in enumerate(items(value, place, most))]
    for i, row in enumerate(rows):
        if len(row) != columns:
            raise InvalidModelFile(f"{place}[{i}]", f"has {len(row)} numbers, not {columns}")
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)


def _count(value: object, place: str) -> int:
    found = number(value, place)
    if found != int(found):
        raise InvalidModelFile(place, "expected a whole number")
    return int(found)


def _counts(value: object, place: str) -> NDArray[np.int64]:
    found = [_count(item, f"{place}[{i}]") for i, item in enumerate(items(value, place, MOST_RANK_COUNTS))]
    return np.array(found, dtype=np.int64)
