"""Expected distinct rows against sums over every row, and against drawn ids."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.access.distinct_rows import expected_distinct_rows
from planner.domain.problem.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess


def distinct(access: AccessStatistics | None, num_rows: int, num_lookups: float) -> float:
    """The expected distinct rows of one table and one number of lookups."""
    found = expected_distinct_rows([access], [num_rows], np.array([[num_lookups]], dtype=np.float64))
    assert found.shape == (1, 1)
    return float(found[0, 0])


def exact(probability: np.ndarray, num_lookups: float) -> float:
    return float(np.sum(1 - (1 - probability) ** num_lookups))


@pytest.mark.parametrize("alpha", [0.0, 0.4, 0.8, 1.05, 1.2, 2.0])
@pytest.mark.parametrize("num_rows", [3, 100, 50_000, 1_000_000])
def test_zipf_against_every_row(alpha: float, num_rows: int) -> None:
    weight = np.arange(1, num_rows + 1, dtype=np.float64) ** -alpha
    for num_lookups in (1.0, 500.0, 200_000.0):
        found = distinct(ZipfAccess(alpha=alpha), num_rows, num_lookups)
        assert found == pytest.approx(exact(weight / weight.sum(), num_lookups), rel=2e-3)


def test_zipf_against_drawn_ids() -> None:
    rng = np.random.default_rng(0)
    weight = np.arange(1, 10_001, dtype=np.float64) ** -1.1
    drawn = rng.choice(10_000, size=(20, 5_000), p=weight / weight.sum())
    mean = np.mean([len(np.unique(row)) for row in drawn])
    assert distinct(ZipfAccess(alpha=1.1), 10_000, 5_000) == pytest.approx(mean, rel=0.02)


def test_access_cdf() -> None:
    """A tenth of 1,000 rows takes nine tenths of 1,000 lookups: 100 rows of p = 0.009, 900 of p = 1/9000."""
    access = AccessCdf(points=((0.1, 0.9), (1.0, 1.0)))
    want = 100 * (1 - (1 - 0.009) ** 1000) + 900 * (1 - (1 - 0.1 / 900) ** 1000)
    assert distinct(access, 1000, 1000) == pytest.approx(want, rel=1e-9)


def test_counted_rows_stand_where_they_were_counted() -> None:
    """A scan of 1,000 rows: a hundred lookups are of fifty rows, a thousand of 400, and ten thousand of all."""
    even = ((1.0, 1.0),)
    access = AccessCdf(points=even, counted=((100.0, 50.0), (1000.0, 400.0), (10_000.0, 1000.0)))
    assert [distinct(access, 1000, n) for n in (100, 1000, 10_000)] == pytest.approx([50, 400, 1000], rel=1e-12)
    # Halfway on the scale of logarithms, between 50 and 400.
    assert distinct(access, 1000, 10**2.5) == pytest.approx(20_000**0.5, rel=1e-12)
    # Before the first and after the last as many times more as independent lookups would see.
    few = 50 * (1 - 0.999**10) / (1 - 0.999**100)
    assert distinct(access, 1000, 10) == pytest.approx(few, rel=1e-9)
    longer = AccessCdf(points=even, counted=((100.0, 50.0),))
    assert distinct(longer, 1000, 1000) == pytest.approx(50 * (1 - 0.999**1000) / (1 - 0.999**100), rel=1e-9)


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 1000)), min_size=1, max_size=12),
    st.floats(0, 1e7),
    st.floats(0, 1e7),
)
def test_more_lookups_never_see_fewer_of_counted_rows(drawn: list[tuple[int, int]], a: float, b: float) -> None:
    lookups, rows = sorted({one for one, _ in drawn}), sorted(one for _, one in drawn)
    counted = tuple((float(n), float(min(n, d))) for n, d in zip(lookups, rows, strict=False))
    access = AccessCdf(points=((0.1, 0.9), (1.0, 1.0)), counted=counted)
    less, more = (distinct(access, 1000, n) for n in sorted((a, b)))
    assert less <= more * (1 + 1e-9)


@pytest.mark.parametrize(
    "counted", [((0.0, 0.0),), ((10.0, 11.0),), ((10.0, 5.0), (10.0, 6.0)), ((10.0, 5.0), (20.0, 4.0))], ids=str
)
def test_counts_that_cannot_be_are_refused(counted: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        AccessCdf(points=((1.0, 1.0),), counted=counted)


def test_reuse_histogram_gives_back_its_own_distinct_rows() -> None:
    """60 rows once, 20 twice, 10 about three times: 60 + 40 + 30 = 130 lookups, 90 distinct rows."""
    access = ReuseHistogram(distinct_rows=(60, 20, 10, *[0] * 14))
    assert distinct(access, 10**6, 130) == pytest.approx(90, rel=1e-9)
    # A tenth of the lookups: 60 x .1 + 20 x (1 - .9^2) + 10 x (1 - .9^3) = 6 + 3.8 + 2.71
    assert distinct(access, 10**6, 13) == pytest.approx(12.51, rel=1e-9)
    # Twice as many: 90 x 2^(60/90)
    assert distinct(access, 10**6, 260) == pytest.approx(90 * 2 ** (2 / 3), rel=1e-9)


def test_nothing_known_is_not_guessed() -> None:
    assert math.isnan(distinct(None, 100, 5))
    assert math.isnan(distinct(MissRatioCurve(points=((0.1, 0.5),)), 100, 5))
    assert distinct(None, 100, 0) == 0


@given(st.floats(0, 3), st.integers(1, 10**7), st.floats(0, 1e7), st.floats(0, 1e7))
def test_more_lookups_touch_more_rows_and_never_more_than_there_are(
    alpha: float, rows: int, a: float, b: float
) -> None:
    few, many = sorted((a, b))
    access = ZipfAccess(alpha=alpha)
    less, more = (distinct(access, rows, n) for n in (few, many))
    assert less <= more * (1 + 1e-9)
    assert more <= min(many, rows) * (1 + 1e-12)


def test_many_tables_at_once() -> None:
    """Each row is what its table gives alone, whatever stands around it; more tables than one batch holds."""
    known: list[AccessStatistics | None] = [
        ZipfAccess(alpha=1.05),
        None,
        AccessCdf(points=((0.1, 0.9), (1.0, 1.0))),
        ReuseHistogram(distinct_rows=(60, 20, 10, *[0] * 14)),
        ZipfAccess(alpha=0.0),
        MissRatioCurve(points=((0.1, 0.5),)),
    ]
    accesses = known * 100
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 10**6, len(accesses)).tolist()
    lookups = np.floor(rng.uniform(0, 1e5, (len(accesses), 2))) * rng.integers(0, 2, (len(accesses), 2))
    together = expected_distinct_rows(accesses, rows, lookups)
    alone = [[distinct(access, n, x) for x in pair] for access, n, pair in zip(accesses, rows, lookups, strict=True)]
    assert together == pytest.approx(np.array(alone), rel=1e-9, nan_ok=True)
