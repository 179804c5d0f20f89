"""Rates of rows: distinct rows, misses and CDFs, against exact sums and a true LRU cache."""

import numpy as np
import pytest

from planner.access.distinct_rows import expected_distinct_rows
from planner.access.sketches.drift import rates_of
from planner.access.sketches.nnls import nnls
from planner.access.sketches.rates import RowRates
from tests.support.planning.id_streams import in_batches, lru_miss_ratio, sketched, zipf
from tests.support.thorough import thorough

ROWS = 20_000


def test_two_groups_by_hand() -> None:
    # 10 rows share half of the lookups, 90 rows the other half: p = 0.05 and 1/180
    rates = RowRates(probability=np.array([0.05, 1 / 180]), rows=np.array([10.0, 90.0]))
    (distinct,) = rates.distinct_rows(np.array([20.0]))
    assert distinct == pytest.approx(10 * (1 - np.exp(-1)) + 90 * (1 - np.exp(-1 / 9)))
    # a cache of so many rows holds those of the last 20 lookups
    (missed,) = rates.miss_ratio(np.array([distinct]))
    assert missed == pytest.approx(0.5 * np.exp(-1) + 0.5 * np.exp(-1 / 9))
    assert rates.miss_ratio(np.array([0.0, 100.0])).tolist() == [1.0, 0.0]
    assert rates.access_cdf(200).points == ((0.05, 0.5), (0.5, 1.0), (1.0, 1.0))


def test_more_rows_than_the_table_has_are_cut() -> None:
    rates = RowRates(probability=np.array([0.05, 1 / 180]), rows=np.array([10.0, 90.0]))
    assert rates.access_cdf(50).points == ((0.2, 0.5), (1.0, 1.0))
    assert rates.access_cdf(5).points == ((1.0, 1.0),)


@thorough
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 1.4])
def test_misses_of_a_sketch_are_those_of_a_true_cache(alpha: float) -> None:
    ids = zipf(alpha, ROWS, 600_000)
    rates = rates_of(sketched(in_batches(ids, 4_000)))
    assert rates is not None
    for cache_rows in (100, 1_000, 5_000, 10_000):
        (reported,) = rates.miss_ratio(np.array([float(cache_rows)]))
        assert reported == pytest.approx(lru_miss_ratio(ids, cache_rows), abs=0.03), cache_rows


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 1.4])
def test_distinct_rows_of_a_sketch(alpha: float) -> None:
    ids = zipf(alpha, ROWS, 600_000)
    rates = rates_of(sketched(in_batches(ids, 4_000)))
    assert rates is not None
    for lookups in (400, 4_000, 40_000, 600_000):
        exact = np.mean([len(np.unique(part)) for part in in_batches(ids, lookups)])
        assert rates.distinct_rows(np.array(float(lookups))) == pytest.approx(exact, rel=0.05), lookups


def test_the_planner_counts_the_same_distinct_rows() -> None:
    """The CDF that a plan is made with says what the sketch says."""
    ids = zipf(1.0, ROWS, 600_000)
    rates = rates_of(sketched(in_batches(ids, 4_000)))
    assert rates is not None
    (planned,) = expected_distinct_rows([rates.access_cdf(ROWS)], [ROWS], np.array([[4_000.0, 40_000.0]]))
    exact = [np.mean([len(np.unique(part)) for part in in_batches(ids, n)]) for n in (4_000, 40_000)]
    assert planned == pytest.approx(exact, rel=0.03)


def test_repeats_that_follow_each_other_hit_in_any_cache() -> None:
    """Every row comes eight times in a row and never again: seven lookups of eight hit."""
    batches = [np.repeat(np.random.default_rng(k).integers(0, 10**6, 500), 8) for k in range(100)]
    rates = rates_of(sketched(batches))
    assert rates is not None
    assert rates.miss_ratio(np.array([20.0, 1_000.0, 20_000.0])) == pytest.approx([1 / 8] * 3, abs=0.03)


@thorough
def test_locality_over_several_batches() -> None:
    """Rows come again after 4 batches: half of the lookups of a large cache hit, and few of a small one."""
    first = np.random.default_rng(0).integers(0, 10**6, (400, 1_000))
    batches = [np.concatenate([now, before]) for before, now in zip(first[:-4], first[4:], strict=True)]
    rates = rates_of(sketched(batches))
    assert rates is not None
    exact = [lru_miss_ratio(np.concatenate(batches), rows) for rows in (500, 20_000)]
    assert exact == pytest.approx([1.0, 0.5], abs=0.05)
    assert rates.miss_ratio(np.array([500.0, 20_000.0])) == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("num_batches", [1, 2, 5])
def test_short_traces(num_batches: int) -> None:
    ids = zipf(1.0, ROWS, 4_000 * num_batches)
    rates = rates_of(sketched(in_batches(ids, 4_000)))
    assert rates is not None
    assert rates.distinct_rows(np.array(float(len(ids)))) == pytest.approx(len(np.unique(ids)), rel=0.05)


def test_a_single_lookup() -> None:
    rates = rates_of(sketched([np.array([3])]))
    assert rates is not None
    assert rates.access_cdf(10).points[-1] == (1.0, 1.0)


def test_least_squares_without_negative_coefficients() -> None:
    # without the bound x = (2, -1); with it the second is 0 and the first the mean of what it alone can reach
    matrix, target = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])
    assert nnls(matrix, target) == pytest.approx([1.5, 0.0])
    assert nnls(matrix, np.array([-1.0, -1.0])) == pytest.approx([0.0, 0.0])
    assert nnls(matrix, np.array([1.0, 3.0])) == pytest.approx([1.0, 2.0])


def test_least_squares_of_any_start_meets_the_conditions_of_the_least() -> None:
    """Nothing at zero would make the error smaller, and nothing above zero changes it."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        num = int(rng.integers(1, 25))
        matrix, target = rng.normal(size=(num + 5, num)), rng.normal(size=num + 5)
        if num > 3:
            matrix[:, 1] = matrix[:, 0]  # columns that depend on each other
        for start in (None, rng.random(num) < 0.5, np.zeros(num, dtype=np.bool_)):
            x = nnls(matrix, target, start=start)
            pull = matrix.T @ (target - matrix @ x)
            assert x.min() >= 0
            assert np.all(pull <= 1e-7)
            assert np.all(np.abs(pull[x > 0]) <= 1e-7)


def test_misses_of_caches_of_every_size_against_bisection() -> None:
    """Lookups n with D(n) = C, by Newton's method and by halving, for rates over 40 octaves."""
    rng = np.random.default_rng(1)
    rates = RowRates(probability=2.0 ** -np.arange(1.0, 41.0), rows=rng.random(40) * 2.0 ** np.arange(40.0))
    cache_rows = np.array([1.0, 5.0, 1e3, 1e6, 0.5 * rates.num_rows, (1 - 1e-6) * rates.num_rows])
    for rows, reported in zip(cache_rows, rates.miss_ratio(cache_rows), strict=True):
        low, high = -20.0, 100.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if rates.distinct_rows(np.array(np.exp(middle))) >= rows else (middle, high)
        assert reported == pytest.approx(np.exp(-np.exp(high) * rates.probability) @ rates.shares, rel=1e-6), rows


def test_rates_that_are_like_others_are_the_same() -> None:
    sketch = sketched(in_batches(zipf(1.0, ROWS, 400_000), 4_000))
    other = rates_of(sketched(in_batches(zipf(0.4, ROWS, 900_000), 4_000)))
    alone, helped = rates_of(sketch), rates_of(sketch, like=other)
    assert alone is not None
    assert helped is not None
    sizes = np.array([10.0, 1_000.0, 10_000.0])
    assert helped.miss_ratio(sizes) == pytest.approx(alone.miss_ratio(sizes), abs=1e-8)
