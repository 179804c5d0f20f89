"""One line of verdict for each platform, and for what spans platforms: the order of whole steps, sparse steps alone."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from benchmarks.prices.reality.groups import figures_of
from benchmarks.prices.reality.mlperf.our_plans import Compared
from benchmarks.prices.reality.row import PredictedRow
from benchmarks.prices.reality.whole_steps import GROUP, SPARSE_GROUP
from cost_models.text.number_text import counted

_CLOSE, _USABLE = 0.10, 0.25
_NOISE = 0.01  # between submissions of one system
_FEWEST = 3  # rows that an order can be stated for


def verdicts(rows: Sequence[PredictedRow]) -> Iterator[str]:
    """Yield the verdicts, platforms by name."""
    by_platform: dict[str, list[PredictedRow]] = {}
    for row in rows:
        if SPARSE_GROUP not in row.groups:
            by_platform.setdefault(row.platform, []).append(row)
    for platform, some in sorted(by_platform.items()):
        figures = figures_of(platform, some)
        mean, signed = figures.mean_relative_error, figures.median_signed_error
        quality = "close" if mean <= _CLOSE else "usable" if mean <= _USABLE else "wrong"
        leaning = "too slow" if signed > 0 else "too fast"
        yield (
            f"{platform}: {quality}; mean error {mean:.1%}, 90% below {figures.p90_relative_error:.1%}, median"
            f" {abs(signed):.1%} {leaning}, {counted(figures.rows, 'row')}"
        )
    yield from _order([row for row in rows if GROUP in row.groups])
    yield from _sparse([row for row in rows if SPARSE_GROUP in row.groups])


def _order(steps: Sequence[PredictedRow]) -> Iterator[str]:
    """Compare the order of configurations: rows with one prediction stand for one, by the median that was measured."""
    measured: dict[tuple[str, float], list[float]] = {}
    for row in steps:
        measured.setdefault((row.platform, row.predicted_seconds), []).append(row.measured_seconds)
    if len(measured) >= _FEWEST:
        steps_of = [(predicted, float(np.median(one))) for (_, predicted), one in measured.items()]
        yield f"order of {len(steps_of)} whole steps: Kendall's tau {order_agreement(steps_of):.2f}"


def order_agreement(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Kendall's tau of predicted and measured seconds; measured ones within 1% of each other have no order."""
    signs = [
        np.sign((first[0] - second[0]) * (first[1] - second[1]))
        for first, second in combinations(pairs, 2)
        if abs(first[1] / second[1] - 1) > _NOISE
    ]
    return float(np.mean(signs)) if signs else 1.0


def _sparse(steps: Sequence[PredictedRow]) -> Iterator[str]:
    if steps:
        shares = [row.predicted_seconds / row.measured_seconds for row in steps]
        above = sum(share > 1 for share in shares)
        yield (
            f"sparse step alone: {min(shares):.2f} to {max(shares):.2f} of the whole measured step,"
            f" above it in {above} of {len(shares)}"
        )


def verdict_of_plans(plans: Sequence[Compared]) -> Iterator[str]:
    """Yield one line about steps under our plans, if there are any."""
    if plans:
        ratios = np.array([plan.our_seconds / plan.hugectr_seconds for plan in plans])
        yield (
            f"our plans next to those submitted, both predicted: {np.exp(np.log(ratios).mean()):.3f} of the step in the"
            f" geometric mean over {len(plans)} systems, from {ratios.min():.3f} to {ratios.max():.3f}"
        )
