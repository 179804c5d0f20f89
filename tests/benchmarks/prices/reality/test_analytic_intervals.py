"""Intervals of analytic models: what ships is what the command makes, and half of the launches hold the other half."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prices.reality import kernels
from benchmarks.prices.reality.analytic_intervals import document, kernel_ratios, limits_of
from tests.support.paths import SHARED

PUBLIC = SHARED / "measured_gpu"


def test_limits_are_order_statistics_with_a_margin() -> None:
    ratios = [1 + 0.01 * step for step in range(-50, 50)]  # 100 of them: 5.05 lie beyond each limit
    assert limits_of(ratios) == (pytest.approx(1 - 0.46), pytest.approx(1 + 0.45), 100)


def test_of_few_ratios_all_lie_within() -> None:
    assert limits_of([0.9, 1.3, 1.1]) == (0.9, 1.3, 3)


def test_the_prediction_lies_within() -> None:
    assert limits_of([1.2, 1.3]) == (1.0, 1.3, 2)


@pytest.fixture(scope="module")
def public() -> Path:
    if not PUBLIC.is_dir():
        pytest.skip(f"no public measurements at {PUBLIC}")
    return PUBLIC


def test_what_ships_is_what_the_command_makes(public: Path) -> None:
    shipped = json.loads((files("cost_models") / "intervals" / "factors.json").read_text(encoding="utf-8"))
    assert document(public) == shipped


def test_limits_of_half_of_the_launches_hold_the_other_half(public: Path) -> None:
    inside = []
    for ratios in kernel_ratios(kernels.rows(public)).values():
        lower, upper, _ = limits_of(ratios[::2])
        inside += [lower <= ratio <= upper for ratio in ratios[1::2]]
    assert len(inside) > 60
    assert np.mean(inside) > 0.8
