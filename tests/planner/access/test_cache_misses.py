"""Miss curves against a simulated cache, against sums by hand, and what more accesses may not change."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.access.cache_misses import MissCurves
from planner.access.distinct_rows import expected_distinct_rows
from planner.domain.problem.access import (
    NUM_REUSE_BINS,
    AccessCdf,
    AccessStatistics,
    MissRatioCurve,
    ReuseHistogram,
    ZipfAccess,
)
from tests.support.thorough import thorough

SHARES = np.linspace(0.0, 1.0, 201)
UNIFORM = ZipfAccess(alpha=0.0)
SKEWED = AccessCdf(points=((0.1, 0.9), (1.0, 1.0)))
FEW_SEEN = ReuseHistogram(distinct_rows=(6000, 2000, 900, 300, 100, 30, *[0] * 11))
KNOWN = [ZipfAccess(alpha=0.6), ZipfAccess(alpha=1.05), ZipfAccess(alpha=2.5), UNIFORM, SKEWED, FEW_SEEN]


def curves(*accesses: AccessStatistics | None, num_rows: int = 10_000, num_lookups: float = 2_000) -> MissCurves:
    """Curves of tables that differ in nothing but their accesses."""
    lookups = np.full(len(accesses), float(num_lookups))
    distinct = expected_distinct_rows(accesses, [num_rows] * len(accesses), lookups[:, None])[:, 0]
    return MissCurves(
        accesses=accesses, num_rows=(num_rows,) * len(accesses), num_lookups=lookups, distinct_rows=distinct
    )


def missed(access: AccessStatistics | None, share: float, num_rows: int = 10_000, num_lookups: float = 2_000) -> float:
    """Missed share of the distinct rows of one table."""
    found = curves(access, num_rows=num_rows, num_lookups=num_lookups).missed_of(0, np.array([share]))
    return float(found[0])


@pytest.mark.parametrize("access", KNOWN, ids=str)
def test_no_cache_misses_all_rows_and_a_cache_of_all_rows_none(access: AccessStatistics) -> None:
    assert missed(access, 0.0) == pytest.approx(1, abs=1e-12)
    assert missed(access, 1.0) == 0


@given(
    st.sampled_from(KNOWN), st.sampled_from((1, 2, 33, 1000, 10**7)), st.sampled_from((0.5, 40.0, 3_000.0, 1_000_000.0))
)
def test_every_row_more_helps_and_helps_less_than_the_one_before(
    access: AccessStatistics, num_rows: int, num_lookups: float
) -> None:
    if access is FEW_SEEN:
        num_rows = max(num_rows, 10_000)  # rows that were seen are rows of the table
    found = curves(access, num_rows=num_rows, num_lookups=num_lookups).missed_of(0, SHARES)
    assert np.all((found >= 0) & (found <= 1 + 1e-12))
    steps = np.diff(found)
    assert np.all(steps <= 1e-9)
    assert np.all(np.diff(steps) >= -1e-9)


def simulated(probability: np.ndarray, num_lookups: int, capacity: int, steps: int = 3_000) -> float:
    """Missed share of the distinct rows of a step in an LRU cache, after it has filled.

    A row is held where fewer than ``capacity`` rows were touched after it; rows of one step are in random order.
    """
    rng = np.random.default_rng(7)
    last = np.full(len(probability), -1.0)
    missed_rows = touched_rows = 0
    for step in range(steps):
        touched = np.unique(rng.choice(len(probability), size=num_lookups, p=probability))
        if step >= steps // 2:
            held = last >= np.partition(last, -capacity)[-capacity]
            missed_rows += int(np.sum(~held[touched]))
            touched_rows += len(touched)
        last[touched] = step + rng.uniform(0, 0.5, len(touched))
    return missed_rows / touched_rows


@thorough
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.05, 1.4])
@pytest.mark.parametrize("share", [0.2, 0.4, 0.7])
def test_against_a_simulated_cache(alpha: float, share: float) -> None:
    """2,000 rows and 300 lookups: at most 300 distinct rows of a step, in caches of 400 rows and more."""
    weight = np.arange(1, 2_001, dtype=np.float64) ** -alpha
    want = simulated(weight / weight.sum(), 300, round(share * 2_000))
    assert missed(ZipfAccess(alpha=alpha), share, 2_000, 300) == pytest.approx(want, rel=0.03)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("num_lookups", [10, 5_000])
def test_rows_that_are_all_alike_are_missed_as_often_as_they_are_not_held(share: float, num_lookups: float) -> None:
    """One q for all rows: C / R = 1 - (1 - q)^t and M / sum q = (1 - q)^t, so that they add up to 1."""
    for access in (UNIFORM, AccessCdf(points=((1.0, 1.0),))):
        assert missed(access, share, num_lookups=num_lookups) == pytest.approx(1 - share, abs=2e-3)


def test_two_classes_by_hand() -> None:
    """100 rows of p = 0.009 and 900 of p = 1/9,000, 1,000 lookups: q = 0.99988 and 0.10520.

    After three steps 100 + 900 x (1 - 0.89480^3) = 355.2 rows of 1,000 are held, and of 100.0 + 94.68 touched rows
    94.68 x 0.89480^3 = 67.83 are missed: a share of 0.3484.
    """
    q = 1 - (1 - 0.1 / 900) ** 1000
    hot = 1 - (1 - 0.009) ** 1000
    preserved = (1 - q) ** 3
    held = (100 * (1 - (1 - hot) ** 3) + 900 * (1 - preserved)) / 1000
    assert held == pytest.approx(0.3552, abs=1e-4)
    want = 900 * q * preserved / (100 * hot + 900 * q)
    assert want == pytest.approx(0.3484, abs=1e-4)
    assert missed(SKEWED, held, 1000, 1000) == pytest.approx(want, abs=5e-3)


def test_measured_points_of_lookups_become_shares_of_distinct_rows() -> None:
    """The curve itself where every lookup is of another row; four times as much, at most 1, where four are of one."""
    curve = MissRatioCurve(points=((0.1, 0.3), (0.5, 0.05)))
    every = curves(curve, num_lookups=2_000)
    grid = np.linspace(0.0, 1.0, 65)
    want = np.interp(grid, [0.0, 0.1, 0.5, 1.0], [1.0, 0.3, 0.05, 0.0])
    np.testing.assert_allclose(every.missed_of(0, grid), want, atol=1e-12)
    repeated = MissCurves(
        accesses=(curve,), num_rows=(10_000,), num_lookups=np.array([2_000.0]), distinct_rows=np.array([500.0])
    )
    np.testing.assert_allclose(repeated.missed_of(0, grid), np.minimum(4 * want, 1.0), atol=1e-12)


def test_no_measured_point_is_lost() -> None:
    """Ten thousand of them, the closest a millionth of the rows apart: none is lost between points of a grid."""
    held = np.geomspace(1e-6, 0.9, 10_000)
    missed_shares = 0.5 * (1 - held) ** 3
    curve = MissRatioCurve(points=tuple(zip(held.tolist(), missed_shares.tolist(), strict=True)))
    found = curves(curve).missed_of(0, held)
    np.testing.assert_allclose(found, missed_shares, rtol=1e-12)
    steep = MissRatioCurve(points=((0.001, 0.1), (1.0, 0.0)))
    assert missed(steep, 0.001) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("points", "share", "want"),
    [
        (((0.0, 0.8), (0.5, 0.2)), 0.0, 0.8),  # what is given of no cache stands
        (((0.25, 0.4),), 0.0, 1.0),  # nothing given: every lookup is missed
        (((0.25, 0.4), (1.0, 0.3)), 1.0, 0.0),  # a cache of all rows misses none, whatever was measured
        (((0.25, 0.4),), 0.25, 0.4),
    ],
)
def test_ends_of_a_measured_curve(points: tuple[tuple[float, float], ...], share: float, want: float) -> None:
    assert missed(MissRatioCurve(points=points), share) == pytest.approx(want)


def histogram_of(counts: np.ndarray) -> ReuseHistogram:
    """Rows by how often they were looked up, in the bins of a histogram."""
    seen = counts[counts > 0]
    bins = np.minimum(np.ceil(np.log2(seen)), NUM_REUSE_BINS - 1).astype(np.int64)
    return ReuseHistogram(distinct_rows=tuple(np.bincount(bins, minlength=NUM_REUSE_BINS).astype(float).tolist()))


@pytest.mark.parametrize("sigma", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_histogram_of_known_rates_gives_their_curve(sigma: float, share: float) -> None:
    """Poisson counts of log-normal rates; the fit sees one batch of them and not the rates.

    With rates r and a step of the same size, q = 1 - exp(-r): held and missed rows are the sums over all rows.
    """
    rng = np.random.default_rng(3)
    rates = rng.lognormal(-0.5, sigma, 50_000)
    counts = rng.poisson(rates)
    unseen = np.exp(-rates)
    steps = np.geomspace(1e-3, 1e5, 500)[:, None]
    preserved = unseen[None, ::10] ** steps  # each tenth row
    held, left = np.mean(1 - preserved, axis=1), np.mean((1 - unseen[None, ::10]) * preserved, axis=1)
    want = float(np.interp(share, held, left / np.mean(1 - unseen[::10])))
    found = missed(histogram_of(counts), share, 50_000, float(counts.sum()))
    assert found == pytest.approx(want, abs=0.03)


def test_rows_that_are_too_many_to_be_seen_twice_are_not_taken_for_few() -> None:
    """1,000 lookups of 10^6 equally likely rows: 1,000 rows once, less than one of them twice.

    All rows are alike, so that a cache of half of them misses half of a step's; were there 16 rows for each that was
    seen, 30 of them would have been seen twice.
    """
    counts = np.random.default_rng(5).poisson(1e-3, 10**6)
    found = curves(histogram_of(counts), num_rows=10**6, num_lookups=float(counts.sum())).missed_of(0, SHARES)
    np.testing.assert_allclose(found, 1 - SHARES, atol=0.1)


def test_nothing_known_is_not_guessed() -> None:
    """No access statistics; a table that nobody looks up has nothing to miss either."""
    assert math.isnan(missed(None, 0.5))
    assert math.isnan(missed(ZipfAccess(alpha=1.0), 0.5, num_lookups=0))


def test_shards_ask_for_their_own_table() -> None:
    """Each shard by its table and share, in any order; NaN where it has no cache."""
    both = curves(UNIFORM, SKEWED)
    table, share = np.array([1, 0, 1, 0]), np.array([0.3, 0.5, np.nan, 0.25])
    found = both.at(table, share)
    assert found[0] == both.missed_of(1, share[:1])[0]
    assert found[1] == both.missed_of(0, share[1:2])[0]
    assert math.isnan(found[2])
    assert found[3] == both.missed_of(0, share[3:])[0]
    assert np.isnan(both.at(table, np.full(4, np.nan))).all()


def test_more_tables_than_one_batch_of_them() -> None:
    """Each row is what its table gives alone, whatever stands around it."""
    known: list[AccessStatistics | None] = [ZipfAccess(alpha=1.05), None, SKEWED, FEW_SEEN]
    many = curves(*known * 100)
    for index in (0, 2, 3, 255, 256, 257, 258, 399):
        alone = curves(known[index % 4]).missed_of(0, SHARES)
        np.testing.assert_allclose(many.missed_of(index, SHARES), alone, rtol=1e-9, atol=1e-12)


def missed_rows(access: AccessStatistics, share: float, num_rows: int = 10_000, num_lookups: float = 2_000) -> float:
    """Rows that a step misses: the share of the distinct rows times how many there are."""
    distinct = expected_distinct_rows([access], [num_rows], np.array([[num_lookups]]))[0, 0]
    return float(distinct) * missed(access, share, num_rows, num_lookups)


@given(st.sampled_from((0.05, 0.2, 0.5, 0.9)), st.floats(0, 2.5), st.floats(0, 2.5))
def test_a_steeper_zipf_never_misses_more_rows(share: float, one: float, other: float) -> None:
    flat, steep = (missed_rows(ZipfAccess(alpha=alpha), share) for alpha in sorted((one, other)))
    assert steep <= flat * (1 + 1e-3) + 1e-6


@given(st.sampled_from((0.05, 0.2, 0.5, 0.9)), st.floats(0, 0.9), st.floats(0, 0.9))
def test_more_lookups_to_the_hottest_rows_never_miss_more_rows(share: float, one: float, other: float) -> None:
    """p' = (1 - t) p + t x (uniform over the hottest tenth): t of the lookups move to the hottest rows."""
    base = ((0.1, 0.5), (0.4, 0.8), (1.0, 1.0))

    def moved(t: float) -> AccessCdf:
        return AccessCdf(points=tuple((rows, (1 - t) * lookups + t) for rows, lookups in base))

    less, more = (missed_rows(moved(t), share) for t in sorted((one, other)))
    assert more <= less * (1 + 1e-3) + 1e-6
