"""The heaviest row block of a table: docs/cost-models.md#row-blocks."""

import itertools
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.rows.access import Points, Rows, classes, hottest_first, missed_of, missed_share, on_lines


@dataclass(frozen=True)
class Heaviest:
    """The largest shares that a block has of a table's lookups and distinct rows."""

    lookups: float
    distinct: float


def curves(access: dict[str, Any], num_rows: int, lookups: float) -> tuple[Points, Points] | None:
    """Return the shares of lookups and of distinct rows by row number; ``None`` where blocks are equal."""
    if access.get("row_cdf") is not None:
        given = [(0.0, 0.0), *((x, y) for x, y in access["row_cdf"])]
        of_distinct = access.get("distinct_row_cdf")
        return given, given if of_distinct is None else [(0.0, 0.0), *((x, y) for x, y in of_distinct)]
    if access.get("ids") != "frequency_sorted":
        return None
    known = classes(access, num_rows, lookups)
    return None if known is None else hottest_first(known, num_rows)


def shares(lines: Points, num_rows: int, num_blocks: int) -> list[float]:
    """Return what each block has."""
    ends = [on_lines(lines, end) for end in _ends(num_rows, num_blocks)]
    return [b - a for a, b in itertools.pairwise(ends)]


def _ends(num_rows: int, num_blocks: int) -> list[float]:
    block = -(-num_rows // num_blocks)
    return [min(number * block, num_rows) / num_rows for number in range(num_blocks + 1)]


def missed_of_heaviest(
    access: dict[str, Any], num_rows: int, lookups: float, distinct: float | None, cached: float, num_blocks: int
) -> float | None:
    """Return the most rows that the cache of a block misses, as a share of the most distinct rows of a block."""
    of_table = missed_share(access, num_rows, lookups, distinct, cached)
    lines = curves(access, num_rows, lookups)
    if of_table is None or lines is None or num_blocks == 1:
        return of_table
    ends = _ends(num_rows, num_blocks)
    if access.get("ids") == "frequency_sorted":
        known = classes(access, num_rows, lookups)
        assert known is not None
        rows = ends[1] * num_rows
        return missed_of(_first(known, rows), rows, cached)
    each = shares(lines[1], num_rows, num_blocks)
    most = 0.0
    for number, d in enumerate(each):
        if d > 0:
            room = min(1.0, cached * (ends[number + 1] - ends[number]) / d)
            share = missed_share(access, num_rows, lookups, distinct, room)
            assert share is not None
            most = max(most, d * share)
    return most / max(each)


def _first(known: list[Rows], num_rows: float) -> list[Rows]:
    """Return the hottest rows, so many of them."""
    found, left = [], num_rows
    for one in sorted(known, key=lambda one: -one.lookups):
        found.append(Rows(min(one.rows, max(left, 0.0)), one.lookups, one.chance))
        left -= one.rows
    return found
