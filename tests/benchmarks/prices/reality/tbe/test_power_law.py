"""Distinct rows and misses of generators, against brute force and what a benchmark counted."""

import numpy as np
import pytest

from benchmarks.prices.reality.tbe.power_law import power_law, uniform, zipf_bags


@pytest.mark.parametrize(
    ("lookups", "num_rows", "counted"),
    [(1_048_576, 16_777_216, 293_987.3), (1_048_576, 268_435_456, 366_979.0), (104_857, 1_677_721, 35_028.0)],
)
def test_distinct_rows_are_those_that_recsys_examples_counted(lookups: int, num_rows: int, counted: float) -> None:
    assert power_law(1.05, num_rows, lookups).distinct == pytest.approx(counted, rel=1e-3)


def test_uniform_lookups_agree_with_brute_force() -> None:
    ids = np.random.default_rng(1).integers(0, 1_000, (200, 1_500))
    assert uniform(1_000, 1_500).distinct == pytest.approx(np.mean([len(np.unique(one)) for one in ids]), rel=0.01)


@pytest.mark.parametrize("alpha", [0.9, 1.0, 1.2])
def test_power_laws_agree_with_brute_force(alpha: float) -> None:
    """Whole parts of draws by the inverse of the distribution, of a table with classes of many rows."""
    num_rows = 400_000
    part = np.random.default_rng(2).random((20, 30_000))
    if alpha == 1.0:
        drawn = (num_rows + 1) ** part
    else:
        drawn = (1 + part * ((num_rows + 1) ** (1 - alpha) - 1)) ** (1 / (1 - alpha))
    counted = np.mean([len(np.unique(np.floor(one))) for one in drawn])
    assert power_law(alpha, num_rows, 30_000).distinct == pytest.approx(counted, rel=0.01)


def test_bags_without_repeats_touch_more_rows() -> None:
    """Every bag of 20 ids has 20 different ones: one bag touches exactly so many, and rows of small tables all."""
    assert zipf_bags(1.15, 10_000, 1, 20).distinct == pytest.approx(20, rel=1e-6)
    assert zipf_bags(1.15, 10_000, 100, 20).distinct > power_law(1.15, 10_000, 2_000).distinct
    assert zipf_bags(1.15, 10, 1, 20).distinct == pytest.approx(10, rel=1e-6)


def test_misses_are_those_of_a_simulated_cache() -> None:
    """Steps of 2,000 lookups of 20,000 rows; the cache keeps the 4,000 rows that were used last."""
    random = np.random.default_rng(3)
    last, missed, touched = np.full(20_000, -1), 0, 0
    for step in range(120):
        drawn = (1 + random.random(2_000) * (20_001**-0.2 - 1)) ** (1 / -0.2)
        rows = np.unique(np.floor(drawn).astype(int) - 1)
        if step >= 60:
            held = np.argsort(-last, kind="stable")[:4_000]
            missed += len(np.setdiff1d(rows, held))
            touched += len(rows)
        last[rows] = step
    found = power_law(1.2, 20_000, 2_000)
    assert found.missed_share(4_000) == pytest.approx(missed / touched, rel=0.05)
    assert found.missed_share(20_000) == 0
