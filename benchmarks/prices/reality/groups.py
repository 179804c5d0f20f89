"""Figures of groups of predicted rows: how many there are and how far predictions lie from what was measured."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.prices.reality.row import PredictedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """Absolute relative errors of the rows of a group."""

    group: str
    rows: int
    mean_relative_error: float
    p90_relative_error: float
    largest_relative_error: float
    median_signed_error: float  # above 0 where predictions are too slow
    inside: float | None  # share of rows within their interval, of those that have one

    def document(self) -> dict[str, object]:
        """Return the figures as a part of the results."""
        return asdict(self)


def groups_of(rows: Iterable[PredictedRow]) -> Iterator[tuple[str, list[PredictedRow]]]:
    """Yield the groups by name, each with its rows; a row is in several."""
    found: dict[str, list[PredictedRow]] = {}
    for row in rows:
        for group in row.groups:
            found.setdefault(group, []).append(row)
    yield from sorted(found.items())


def figures_of(group: str, rows: Sequence[PredictedRow]) -> GroupFigures:
    """Return the figures of a group of at least one row."""
    signed = np.array([row.relative_error for row in rows])
    errors = np.abs(signed)
    bounded = [row for row in rows if row.lower_seconds is not None and row.upper_seconds is not None]
    inside = [row.lower_seconds <= row.measured_seconds <= row.upper_seconds for row in bounded]  # type: ignore[operator]
    return GroupFigures(
        group=group,
        rows=len(rows),
        mean_relative_error=float(errors.mean()),
        p90_relative_error=float(np.quantile(errors, 0.9)),
        largest_relative_error=float(errors.max()),
        median_signed_error=float(np.median(signed)),
        inside=float(np.mean(inside)) if inside else None,
    )
