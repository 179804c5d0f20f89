"""Where in the range of rows the lookups are, and the distinct rows of each batch: counts of ranges of rows.

Ranges are equally long, the shortest power of two with which the largest row looked up is in one of 512, so that their
length follows from what was seen. Counts of ranges add up, and two neighbours make one of the next length: merged
counts are those of one worker that saw it all.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints, freeze

MOST_RANGES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Counts of ranges of rows in their order, up to that of the largest row looked up, both (ranges,)."""

    lookups: Ints
    rows: Ints  # distinct rows of each batch, summed over batches

    def __post_init__(self) -> None:
        freeze(self)

    def check(self, largest_row: int | None, lookups: int, rows: int) -> None:
        """Raise ``ValueError`` unless these are the counts of a table with so many lookups, and rows of batches."""
        ranges = 0 if largest_row is None else (largest_row >> range_bits(largest_row)) + 1
        if not self.lookups.shape == self.rows.shape == (ranges,):
            raise ValueError(f"positions have {ranges} ranges where the largest row is {largest_row}")
        for counts, total, what in ((self.lookups, lookups, "lookups"), (self.rows, rows, "distinct rows of batches")):
            if sum(counts.tolist()) != total:
                raise ValueError(f"positions sum to {sum(counts.tolist())} {what}, and the table has {total}")
        if np.any(self.rows > self.lookups) or np.any((self.rows <= 0) & (self.lookups != 0)):
            raise ValueError("a range of positions has more distinct rows than lookups, or none of them")
        if ranges and self.lookups[-1] == 0:
            raise ValueError("the last range of positions has no lookups, and the largest row is in it")


def range_bits(largest_row: int) -> int:
    """Return the logarithm to base 2 of the length of a range."""
    return max(0, largest_row.bit_length() - MOST_RANGES.bit_length() + 1)


class PositionCounter:
    """Counts batch by batch."""

    def __init__(self) -> None:
        self._bits = 0
        self._counts = np.zeros((2, MOST_RANGES), dtype=np.int64)  # lookups, rows

    def add(self, rows: Ints, counts: Ints) -> None:
        """Take in the distinct rows of a batch, in rising order, and how often each is looked up."""
        bits = max(self._bits, range_bits(int(rows[-1])))
        self._counts, self._bits = _longer(self._counts, bits - self._bits), bits
        ranges = rows >> bits
        self._counts[0] += np.bincount(ranges, weights=counts, minlength=MOST_RANGES).astype(np.int64)
        self._counts[1] += np.bincount(ranges, minlength=MOST_RANGES)

    def positions(self, largest_row: int | None) -> Positions:
        """Return the counts so far."""
        ranges = 0 if largest_row is None else (largest_row >> self._bits) + 1
        lookups, rows = self._counts[:, :ranges].copy()
        return Positions(lookups=lookups, rows=rows)


def merged_positions(
    first: Positions | None, first_largest: int | None, second: Positions | None, second_largest: int | None
) -> Positions | None:
    """Return the counts of both, each with its largest row; ``None`` where lookups were not counted by position."""
    if first_largest is None or second_largest is None:  # one of them saw no lookup
        return second if first_largest is None else first
    if first is None or second is None:
        return None
    bits = range_bits(max(first_largest, second_largest))
    sums = np.zeros((2, MOST_RANGES), dtype=np.int64)
    for one, largest in ((first, first_largest), (second, second_largest)):
        counts = np.zeros((2, MOST_RANGES), dtype=np.int64)
        counts[:, : len(one.lookups)] = one.lookups, one.rows
        sums += _longer(counts, bits - range_bits(largest))
    lookups, rows = sums[:, : (max(first_largest, second_largest) >> bits) + 1].copy()
    return Positions(lookups=lookups, rows=rows)


def _longer(counts: Ints, bits: int) -> Ints:
    """Return counts, (2, MOST_RANGES), of ranges that are 2^bits times as long."""
    width = min(bits, MOST_RANGES.bit_length() - 1)  # beyond, all are in the first
    merged = np.zeros_like(counts)
    sums = counts.reshape(len(counts), -1, 2**width).sum(axis=2)
    merged[:, : sums.shape[1]] = sums
    return merged


def row_curve(positions: Positions, largest_row: int, num_rows: int, tolerance: float) -> tuple[Floats, Floats, Floats]:
    """Return ends of ranges as shares of a table's rows, and the shares of lookups and distinct rows up to there.

    Between the points, (points,) each and up to (1, 1, 1), both are linear within ``tolerance`` of what was counted.
    """
    ends = np.arange(1, len(positions.lookups) + 1, dtype=np.float64) * 2 ** range_bits(largest_row)
    rows = np.minimum(ends, largest_row + 1.0) / num_rows
    shares = np.stack([np.cumsum(part) / part.sum() for part in (positions.lookups, positions.rows)])
    points, shares = np.append(0.0, rows), np.concatenate([np.zeros((2, 1)), shares], axis=1)
    chosen, start = [], 0
    while start < len(points) - 1:
        start = _farthest(points, shares, start, tolerance)
        chosen.append(start)
    found, (lookups, distinct) = points[chosen], shares[:, chosen]
    if found[-1] < 1:
        found, lookups, distinct = (np.append(part, 1.0) for part in (found, lookups, distinct))
    lookups[-1] = distinct[-1] = 1.0
    return found, lookups, distinct


def _farthest(points: Floats, shares: Floats, start: int, tolerance: float) -> int:
    """Return the last point to which a straight line from ``start`` stays near all between."""
    ahead = points[start + 1 :] - points[start]
    slopes_low = np.maximum.accumulate((shares[:, start + 1 :] - shares[:, [start]] - tolerance) / ahead, axis=1)
    slopes_high = np.minimum.accumulate((shares[:, start + 1 :] - shares[:, [start]] + tolerance) / ahead, axis=1)
    slope = (shares[:, start + 1 :] - shares[:, [start]]) / ahead
    is_near = np.all((slope >= slopes_low) & (slope <= slopes_high), axis=0)
    return start + 1 + int(np.flatnonzero(is_near)[-1])
