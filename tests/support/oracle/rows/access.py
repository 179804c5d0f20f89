"""Distinct rows, misses of caches and hot rows, in plain loops: docs/cost-models.md#distinct-rows-and-caches."""

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

Points = list[tuple[float, float]]
STEPS = [0.0] + [10 ** (-4 + 13 * j / 62) for j in range(63)]
RATES = [2.0 ** (-12 + j / 2) for j in range(57)]


@dataclass(frozen=True)
class Rows:
    """Some equally likely rows: how many, lookups of one of them in a step, the chance that a step touches it."""

    rows: float
    lookups: float
    chance: float


def on_lines(points: Points, at: float) -> float:
    """Return the height at a place on the straight lines through points; the end points' outside."""
    if at >= points[-1][0]:
        return points[-1][1]
    if at < points[0][0]:
        return points[0][1]
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if points[middle][0] <= at else (low, middle)
    (x, y), (x_next, y_next) = points[low], points[high]
    return y + (y_next - y) * (at - x) / (x_next - x)


def touched(probability: float, lookups: float) -> float:
    """Return the chance that some of so many lookups are of a row."""
    if lookups <= 0:
        return 0.0
    return 1.0 if probability >= 1 else -math.expm1(lookups * math.log1p(-probability))


def distinct_rows(access: dict[str, Any], num_rows: int, lookups: float) -> float | None:
    """Return the expected distinct rows among so many lookups; ``None`` where nothing is known."""
    if lookups <= 0:
        return 0.0
    if access.get("zipf_alpha") is not None:
        found = sum(z * touched(y, lookups) for z, y in _zipf(access["zipf_alpha"], num_rows, 512, 512))
    elif access.get("access_cdf") is not None:
        found = _of_cdf(access, num_rows, lookups)
    elif access.get("reuse_histogram") is not None:
        found = _of_histogram(access["reuse_histogram"], lookups)
    else:
        return None
    return min(found, lookups, num_rows)


def classes(access: dict[str, Any], num_rows: int, lookups: float) -> list[Rows] | None:
    """Return the rows of a table in classes; ``None`` where nothing is known of single rows."""
    if lookups <= 0:
        return None
    if access.get("zipf_alpha") is not None:
        each = _zipf(access["zipf_alpha"], num_rows, 32, 128)
    elif access.get("access_cdf") is not None:
        each = [(z, share / z) for z, share in _segments(access["access_cdf"], num_rows)]
    elif access.get("reuse_histogram") is not None:
        return _fitted(access["reuse_histogram"], num_rows, lookups)
    else:
        return None
    return [Rows(z, y * lookups, touched(y, lookups)) for z, y in each]


def missed_share(
    access: dict[str, Any], num_rows: int, lookups: float, distinct: float | None, cached: float
) -> float | None:
    """Return the share of the distinct rows of a step that a cache of a share of the rows misses."""
    if access.get("miss_ratio_curve") is not None and lookups > 0:
        given = [(x, y) for x, y in access["miss_ratio_curve"] if x < 1]
        if access["miss_ratio_curve"][0][0] > 0:
            given.insert(0, (0.0, 1.0))
        most = min(lookups, num_rows) if distinct is None else distinct
        return min(on_lines([*given, (1.0, 0.0)], cached) * lookups / most, 1.0)
    known = classes(access, num_rows, lookups)
    return None if known is None else missed_of(known, num_rows, cached)


def missed_of(known: list[Rows], num_rows: float, cached: float) -> float:
    """Return the missed share by the classes of so many rows."""
    in_step = sum(one.rows * one.chance for one in known)
    points = []
    for steps in STEPS:
        survival = [1.0 if not steps else _survives(one.chance, steps) for one in known]
        held = sum(one.rows * (1 - left) for one, left in zip(known, survival, strict=True)) / num_rows
        missed = sum(one.rows * one.chance * left for one, left in zip(known, survival, strict=True)) / in_step
        points.append((min(held, 1.0), min(missed, 1.0)))
    return on_lines([*points, (1.0, 0.0)], cached)


def _survives(chance: float, steps: float) -> float:
    return 0.0 if chance >= 1 else math.exp(math.log1p(-chance) * steps)


def hottest_first(known: list[Rows], num_rows: float) -> tuple[Points, Points]:
    """Return the shares of lookups and of distinct rows of the hottest rows, as lines over the share of the rows."""
    order = sorted(known, key=lambda one: -one.lookups)
    all_lookups = sum(one.rows * one.lookups for one in order)
    all_distinct = sum(one.rows * one.chance for one in order)
    rows = lookups = distinct = 0.0
    of_lookups, of_distinct = [(0.0, 0.0)], [(0.0, 0.0)]
    for one in order:
        rows += one.rows
        lookups += one.rows * one.lookups
        distinct += one.rows * one.chance
        of_lookups.append((min(rows / num_rows, 1.0), min(lookups / all_lookups, 1.0)))
        of_distinct.append((min(rows / num_rows, 1.0), min(distinct / all_distinct, 1.0)))
    return [*of_lookups, (1.0, 1.0)], [*of_distinct, (1.0, 1.0)]


def _zipf(alpha: float, num_rows: int, num_single: int, num_classes: int) -> list[tuple[float, float]]:
    """Return rows and the probability of one of them: single rows, then classes between edges."""
    each = [(1.0, float(row)) for row in range(1, min(num_rows, num_single) + 1)]
    if num_rows > num_single:
        first, last = math.log(num_single + 0.5), math.log(num_rows + 0.5)
        edges = [math.exp(first + (last - first) * j / num_classes) for j in range(num_classes + 1)]
        each += [(b - a, math.sqrt(a * b)) for a, b in itertools.pairwise(edges)]
    total = sum(z * row**-alpha for z, row in each)
    return [(z, min(row**-alpha / total, 1.0)) for z, row in each]


def _segments(cdf: list[list[float]], num_rows: int) -> list[tuple[float, float]]:
    """Return rows and share of the lookups of each segment."""
    ends = [(0.0, 0.0), *((x, y) for x, y in cdf)]
    return [((x - a) * num_rows, y - b) for (a, b), (x, y) in itertools.pairwise(ends)]


def _of_cdf(access: dict[str, Any], num_rows: int, lookups: float) -> float:
    def independent(count: float) -> float:
        each = _segments(access["access_cdf"], num_rows)
        return sum(z * touched(share / max(z, 1.0), count) for z, share in each)

    counted = access.get("distinct_rows")
    if not counted:
        return independent(lookups)
    near = min(max(lookups, counted[0][0]), counted[-1][0])
    found = math.exp(on_lines([(math.log(n), math.log(rows)) for n, rows in counted], math.log(near)))
    return found if near == lookups else found * independent(lookups) / independent(near)


def _of_histogram(bins: list[float], lookups: float) -> float:
    counts = [1.0, 2.0, *(0.75 * 2**j for j in range(2, len(bins)))]
    part = lookups / sum(rows * count for rows, count in zip(bins, counts, strict=True))
    if part <= 1:
        return sum(rows * (1 - (1 - part) ** count) for rows, count in zip(bins, counts, strict=True))
    return float(sum(bins) * part ** (bins[0] / sum(bins)))


def _fitted(bins: list[float], num_rows: int, lookups: float) -> list[Rows]:
    """Fit how many rows have which rate per batch to the bins of a histogram."""
    chances = [_bin_chances(rate, len(bins)) for rate in RATES]
    seen, is_seen = sum(bins), [sum(of_rate) for of_rate in chances]

    def likelier(size: list[float]) -> list[float]:
        expected = [sum(x * p[j] for x, p in zip(size, chances, strict=True)) for j in range(len(bins))]
        ratio = [count / max(want, 1e-300) for count, want in zip(bins, expected, strict=True)]
        return [
            x * sum(a * b for a, b in zip(ratio, p, strict=True)) / total
            for x, p, total in zip(size, chances, is_seen, strict=True)
        ]

    size = [seen / len(RATES)] * len(RATES)
    for _ in range(67):
        once = likelier(size)
        change = [b - a for a, b in zip(size, once, strict=True)]
        turn = [c - b - d for b, c, d in zip(once, likelier(once), change, strict=True)]
        long = math.sqrt(sum((d * p) ** 2 for d, p in zip(change, is_seen, strict=True)))
        bent = math.sqrt(sum((d * p) ** 2 for d, p in zip(turn, is_seen, strict=True)))
        step = min(max(long / max(bent, 1e-300), 1.0), 50.0)
        size = likelier(
            [
                max(x + 2 * step * a + step**2 * b, 1e-12 * seen / p)
                for x, a, b, p in zip(size, change, turn, is_seen, strict=True)
            ]
        )
    rates, most = RATES, max(num_rows, seen)
    if sum(size) > most:
        size, rates = _raised(size, most)
    scale = lookups / sum(x * rate for x, rate in zip(size, rates, strict=True))
    return [Rows(x, rate * scale, -math.expm1(-rate * scale)) for x, rate in zip(size, rates, strict=True)]


def _raised(size: list[float], most: float) -> tuple[list[float], list[float]]:
    """Raise the lowest rates until there are no more rows than that."""
    were_seen = [x * -math.expm1(-rate) for x, rate in zip(size, RATES, strict=True)]

    def rows(least: float) -> list[float]:
        return [x / -math.expm1(-max(rate, least)) for x, rate in zip(were_seen, RATES, strict=True)]

    low, high = math.log2(RATES[0]), math.log2(RATES[-1])
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(rows(2.0**middle)) > most else (low, middle)
    return rows(2.0**high), [max(rate, 2.0**high) for rate in RATES]


@functools.cache
def _bin_chances(rate: float, num_bins: int) -> list[float]:
    """Return the chance that a Poisson count falls into each bin: 1, 2, 3-4, 5-8, ..."""
    spread = 12 * math.sqrt(rate)
    found = [0.0] * num_bins
    for count in range(max(1, int(rate - spread)), int(rate + spread + 24) + 1):
        chance = math.exp(count * math.log(rate) - rate - math.lgamma(count + 1))
        found[min((count - 1).bit_length(), num_bins - 1)] += chance
    return [max(chance, 1e-300) for chance in found]
