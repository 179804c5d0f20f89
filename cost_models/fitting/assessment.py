"""How well predictions meet held-out measurements: the figures of a model's report. Pure; knows no model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, take_rows

#: A group of more pairs than this is judged by this many of its rows: the pairs grow as the square.
MOST_ROWS_OF_TAU = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutResult:
    """Held-out rows and what was predicted of them; every array has shape (num_rows,)."""

    measured_seconds: Floats  # > 0
    predicted_seconds: Floats
    lower_seconds: Floats
    upper_seconds: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The error of some rows."""

    group: str  # which rows: "all", "4 ranks", "1 shard", ...
    num_rows: int
    mean_relative_error: float
    median_relative_error: float
    rank_correlation: float  # Kendall's tau-b; NaN where fewer than two rows, or all equal
    coverage: float  # share of the rows within their intervals
    mean_interval_ratio: float  # geometric mean of upper over lower


def figures(group: str, rows: HeldOutResult) -> Figures:
    """Return the figures of these rows, of which there is at least one."""
    relative = np.abs(rows.predicted_seconds / rows.measured_seconds - 1)
    inside = (rows.lower_seconds <= rows.measured_seconds) & (rows.measured_seconds <= rows.upper_seconds)
    ratio = np.log(rows.upper_seconds / rows.lower_seconds)
    return Figures(
        group=group,
        num_rows=len(relative),
        mean_relative_error=float(relative.mean()),
        median_relative_error=float(np.median(relative)),
        rank_correlation=kendall_tau(rows.measured_seconds, rows.predicted_seconds),
        coverage=float(inside.mean()),
        mean_interval_ratio=float(np.exp(ratio.mean())),
    )


def figures_by(labels: Sequence[str], rows: HeldOutResult) -> tuple[Figures, ...]:
    """Return the figures of all rows, then of those of each label in order of its first row."""
    found = [figures("all", rows)]
    names = np.array(labels)
    for label in dict.fromkeys(labels):
        found.append(figures(label, take_rows(rows, names == label)))
    return tuple(found)


def size_labels(num_shards: NDArray[np.int64]) -> list[str]:
    """Name the sizes of fused groups that a report distinguishes."""
    ends = ((1, "1 shard"), (3, "2-3 shards"), (7, "4-7 shards"), (15, "8-15 shards"))
    return [next((text for end, text in ends if count <= end), "16 shards or more") for count in num_shards.tolist()]


def points(rows: HeldOutResult, most: int, seed: int) -> tuple[tuple[float, float], ...]:
    """Return at most ``most`` pairs of measured and predicted seconds, for a picture."""
    chosen = np.random.default_rng(seed).permutation(len(rows.measured_seconds))[:most]
    return tuple(zip(rows.measured_seconds[chosen].tolist(), rows.predicted_seconds[chosen].tolist(), strict=True))


def kendall_tau(left: Floats, right: Floats) -> float:
    """Return Kendall's tau-b: how often two orders agree on a pair, ties set aside.

    References
    ----------
    Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945).
    """
    left, right = left[:MOST_ROWS_OF_TAU], right[:MOST_ROWS_OF_TAU]
    agree, left_pairs, right_pairs = 0.0, 0, 0
    for i in range(len(left) - 1):
        a, b = np.sign(left[i + 1 :] - left[i]), np.sign(right[i + 1 :] - right[i])
        agree += float(a @ b)
        left_pairs += int(np.count_nonzero(a))
        right_pairs += int(np.count_nonzero(b))
    if not left_pairs or not right_pairs:
        return float("nan")
    return agree / float(np.sqrt(float(left_pairs) * float(right_pairs)))
