"""Rows in classes of equally likely ones."""

import numpy as np
import pytest

from planner.access.row_classes import RowClasses, row_classes
from planner.domain.problem.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess


def classes_of(access: AccessStatistics, rows: int = 1000, lookups: float = 500.0) -> RowClasses:
    (found,) = row_classes([access], [rows], np.array([lookups]))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "access", [ZipfAccess(alpha=1.1), ZipfAccess(alpha=0.0), AccessCdf(points=((0.1, 0.7), (1.0, 1.0)))]
)
def test_classes_hold_all_rows_and_all_lookups(access: AccessStatistics) -> None:
    found = classes_of(access)
    assert found.size.sum() == pytest.approx(1000)
    assert found.size @ found.lookups == pytest.approx(500)
    np.testing.assert_array_less(found.chance, np.minimum(found.lookups, 1.0) + 1e-12)


def test_a_segment_of_a_cdf_is_a_class() -> None:
    """100 rows share 350 lookups, 900 rows the other 150; 500 lookups miss a row of p = 0.007 with (1 - p)^500."""
    found = classes_of(AccessCdf(points=((0.1, 0.7), (1.0, 1.0))))
    np.testing.assert_allclose(found.size, [100, 900])
    np.testing.assert_allclose(found.lookups, [3.5, 150 / 900])
    assert found.chance[0] == pytest.approx(1 - (1 - 0.007) ** 500)


def test_a_histogram_is_scaled_to_other_batches() -> None:
    """Of 10,000 rows looked up at a rate of 2 per batch, 1 - e^-2 are seen; in four batches 1 - e^-8."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(2.0, 10_000)
    bins = np.zeros(17)
    np.add.at(bins, np.ceil(np.log2(counts[counts > 0])).astype(int), 1)
    histogram = ReuseHistogram(distinct_rows=tuple(bins.tolist()))
    once, four = (classes_of(histogram, 10_000, factor * float(counts.sum())) for factor in (1.0, 4.0))
    assert once.size @ once.chance == pytest.approx(10_000 * (1 - np.exp(-2)), rel=0.02)
    assert four.size @ four.chance == pytest.approx(10_000 * (1 - np.exp(-8)), rel=0.02)


def test_rows_that_no_one_saw_are_at_most_those_left() -> None:
    seen_once = ReuseHistogram(distinct_rows=(900.0, *([0.0] * 16)))
    assert classes_of(seen_once, 1000).size.sum() <= 1000 + 1e-6
    assert classes_of(seen_once, 10**6).size.sum() > 2000


def test_nothing_is_known_of_unused_tables_and_of_caches() -> None:
    curve = MissRatioCurve(points=((0.5, 0.1),))
    assert row_classes([ZipfAccess(alpha=1.0), None, curve], [10] * 3, np.array([0.0, 5.0, 5.0])) == [None] * 3
