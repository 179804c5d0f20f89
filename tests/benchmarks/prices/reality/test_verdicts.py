"""Verdicts: one line for each platform, and the order of whole steps."""

import pytest

from benchmarks.prices.reality.groups import figures_of, groups_of
from benchmarks.prices.reality.mlperf.our_plans import Compared
from benchmarks.prices.reality.row import PredictedRow
from benchmarks.prices.reality.verdicts import order_agreement, verdict_of_plans, verdicts


def row(platform: str, measured: float, predicted: float, **limits: float) -> PredictedRow:
    return PredictedRow(
        groups=("whole step", f"whole step: {platform}"),
        file="f.csv",
        line=2,
        platform=platform,
        subject="step",
        measured_seconds=measured,
        predicted_seconds=predicted,
        lower_seconds=limits.get("lower"),
        upper_seconds=limits.get("upper"),
    )


def test_figures_are_of_absolute_errors() -> None:
    rows = [row("X", 1.0, 1.1, lower=0.9, upper=1.2), row("X", 1.0, 0.7, lower=0.5, upper=0.9), row("X", 1.0, 1.2)]
    figures = figures_of("g", rows)
    assert figures.mean_relative_error == pytest.approx(0.2)
    assert figures.largest_relative_error == pytest.approx(0.3)
    assert figures.median_signed_error == pytest.approx(0.1)
    assert figures.inside == 0.5
    assert [name for name, _ in groups_of(rows)] == ["whole step", "whole step: X"]


def test_a_platform_is_close_usable_or_wrong() -> None:
    lines = list(verdicts([row("A", 1.0, 1.05), row("B", 1.0, 0.8), row("C", 1.0, 3.0)]))
    assert [line.split(";")[0] for line in lines[:3]] == ["A: close", "B: usable", "C: wrong"]
    assert "too slow, 1 row" in lines[0]
    assert "too fast" in lines[1]


def test_order_counts_pairs_that_noise_does_not_decide() -> None:
    assert order_agreement([(1, 1), (2, 2), (3, 3)]) == 1
    assert order_agreement([(1, 3), (2, 2), (3, 1)]) == -1
    assert order_agreement([(2, 1.0), (1, 1.005), (3, 2)]) == 1  # the first two are within 1%


def test_plans_are_compared_in_the_geometric_mean() -> None:
    assert not list(verdict_of_plans([]))
    plans = [Compared(platform="A", global_batch=1, hugectr_seconds=1.0, our_seconds=ours) for ours in (0.5, 2.0)]
    (line,) = verdict_of_plans(plans)
    assert "1.000 of the step" in line
    assert "0.500 to 2.000" in line
