"""Limits of ids: no batch of many exceeds them, they are near what the fullest batches need, and rotations count."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Floats, Ints
from planner.domain.problem.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.options.runtimes.sparsecore.id_limits import Limits, Lookups, limits_of, peak_load
from planner.options.runtimes.sparsecore.row_rates import RowRateBins

BENT = AccessCdf(points=((0.001, 0.2), (0.1, 0.7), (1.0, 1.0)))


def rates_of(access: AccessStatistics, num_rows: int) -> Floats:
    """The probability of every row, one by one."""
    if isinstance(access, ZipfAccess):
        rates = np.arange(1, num_rows + 1.0) ** -access.alpha
        return rates / rates.sum()
    assert isinstance(access, AccessCdf)
    x, y = np.array([(0.0, 0.0), *access.points]).T
    rates = np.diff(np.interp(np.arange(num_rows + 1) / num_rows, x, y))
    return rates / rates.sum()


def lookups(access: AccessStatistics, num_rows: int, expected: float, rotation: int = 0) -> Lookups:
    rows = RowRateBins.of(access, num_rows)
    assert rows is not None
    return Lookups(rows=rows, expected=expected, rotation=rotation)


def limits(*tables: Lookups, cores: int, drop: float = 1e-6, placement: float = 1e-3) -> Limits:
    return limits_of(tables, cores, drop_probability=drop, placement_probability=placement)


def fullest(
    draw: np.random.Generator, tables: list[tuple[Floats, float, Ints]], cores: int, steps: int, *, poisson: bool
) -> tuple[list[int], list[int]]:
    """Most ids and most unique ids of any partition in each step, by counting ids that were drawn one by one.

    Of every table the probability of each row, the lookups of a SparseCore, and the SparseCore of each row.
    """
    most, unique = [], []
    for _ in range(steps):
        ids, distinct = np.zeros((cores, cores), np.int64), np.zeros((cores, cores), np.int64)
        for sender in range(cores):
            for rates, expected, core_of in tables:
                num = draw.poisson(expected) if poisson else int(expected)
                rows = np.minimum(np.searchsorted(np.cumsum(rates), draw.random(num)), len(rates) - 1)
                ids[sender] += np.bincount(core_of[rows], minlength=cores)
                distinct[sender] += np.bincount(core_of[np.unique(rows)], minlength=cores)
        most.append(int(ids.max()))
        unique.append(int(distinct.max()))
    return most, unique


CASES = [
    # accesses and rows, lookups of a SparseCore; SparseCores; at most so many times the most of 20 steps, hashed
    ([(ZipfAccess(alpha=0.0), 10_000, 800.0)], 8, 1.3, 1.3),
    ([(ZipfAccess(alpha=0.8), 100_000, 2000.0)], 16, 1.7, 1.3),
    ([(ZipfAccess(alpha=1.05), 100_000, 2000.0)], 16, 2.2, 1.5),
    ([(BENT, 20_000, 3000.0)], 8, 1.5, 1.3),
    ([(ZipfAccess(alpha=1.0), 5_000, 600.0), (BENT, 20_000, 900.0), (ZipfAccess(alpha=0.5), 900, 300.0)], 8, 1.7, 1.3),
]


@pytest.mark.parametrize("poisson", [False, True])
@pytest.mark.parametrize(("case", "cores", "loose", "loose_unique"), CASES)
def test_no_batch_of_hashed_ids_exceeds_limits_that_are_near(
    case: list[tuple[AccessStatistics, int, float]], cores: int, loose: float, loose_unique: float, *, poisson: bool
) -> None:
    found = limits(*(lookups(*one) for one in case), cores=cores)
    draw = np.random.default_rng(11)
    most, unique = [], []
    for _ in range(5):  # placements
        tables = [(rates_of(access, rows), n, draw.permutation(rows) % cores) for access, rows, n in case]
        ids, distinct = fullest(draw, tables, cores, 4, poisson=poisson)
        most += ids
        unique += distinct
    assert max(most) <= found.max_ids <= loose * max(most)
    assert max(unique) <= found.max_unique_ids <= loose_unique * max(unique)


@pytest.mark.parametrize(("case", "cores", "_loose", "_loose_unique"), CASES)
def test_no_batch_of_ids_in_order_of_access_rate_exceeds_limits(
    case: list[tuple[AccessStatistics, int, float]], cores: int, _loose: float, _loose_unique: float
) -> None:
    """With every rotation, also with none, where the hottest rows of all tables meet on one SparseCore."""
    draw = np.random.default_rng(12)
    for rotation in (0, 1, 3):
        turns = [number * rotation % cores for number in range(len(case))]
        found = limits(*(lookups(*one, turn) for one, turn in zip(case, turns, strict=True)), cores=cores)
        tables = [
            (rates_of(access, rows), n, (np.arange(rows) + turn) % cores)
            for (access, rows, n), turn in zip(case, turns, strict=True)
        ]
        ids, distinct = fullest(draw, tables, cores, 10, poisson=True)
        assert max(ids) <= found.max_ids
        assert max(distinct) <= found.max_unique_ids


def test_drops_are_as_seldom_as_stated() -> None:
    """With limits for one step in ten, fewer than a tenth of many steps exceed them, but some do: they bind.

    Rows are placed again for every step, so that both probabilities are of a step.
    """
    draw, cores = np.random.default_rng(13), 4
    rates = rates_of(ZipfAccess(alpha=0.9), 300)
    found = limits(lookups(ZipfAccess(alpha=0.9), 300, 60.0), cores=cores, drop=0.1, placement=0.1)
    steps = 3000
    over = over_unique = 0
    for _ in range(steps):
        ids, distinct = fullest(draw, [(rates, 60.0, draw.permutation(300) % cores)], cores, 1, poisson=True)
        over += ids[0] > found.max_ids
        over_unique += distinct[0] > found.max_unique_ids
    assert 0 < over <= 0.2 * steps
    assert 0 < over_unique <= 0.1 * steps


def test_hot_rows_that_meet_cost_room_and_rotations_avoid_it() -> None:
    """Each table has one row with half of its lookups; in order of heat, they meet where nothing is turned."""
    hot = AccessCdf(points=((0.001, 0.5), (1.0, 1.0)))
    tables = [lookups(hot, 1000, 400.0) for _ in range(4)]
    apart = [replace(one, rotation=turn) for turn, one in enumerate(tables)]
    assert peak_load(tables, 8) == pytest.approx(4 * (200 + 200 * 124 / 999))
    assert peak_load(apart, 8) == pytest.approx(200 + 200 * (3 * 125 + 124) / 999)
    met, turned = (limits(*some, cores=8, placement=0.5).max_ids for some in (tables, apart))
    assert met > 4 * 200 + 100
    assert turned < met


def test_hashed_rows_that_are_likely_to_meet_have_room_together() -> None:
    """Two tables, one row each with all lookups, on two SparseCores: in order of heat they are apart."""
    one_row = AccessCdf(points=((0.01, 1.0), (1.0, 1.0)))
    apart = [lookups(one_row, 100, 1000.0, rotation) for rotation in (0, 1)]
    assert peak_load(apart, 2) == pytest.approx(1000)
    found = limits(*apart, cores=2)
    assert 2000 < found.max_ids < 2400
    assert limits(*apart, cores=2, placement=0.9).max_ids > 2000  # they meet in half of all cases


@pytest.mark.parametrize("access", [ZipfAccess(alpha=a) for a in (0.0, 0.7, 1.0, 1.3)] + [BENT])
@pytest.mark.parametrize("num_rows", [1, 40, 513, 30_000])
def test_bins_have_all_rows_and_bound_their_rates(access: AccessStatistics, num_rows: int) -> None:
    bins, rates = RowRateBins.of(access, num_rows), rates_of(access, num_rows)
    assert bins is not None
    assert bins.num_rows == num_rows
    assert bins.count @ bins.mean == pytest.approx(1.0, abs=1e-7)
    if isinstance(access, AccessCdf) and num_rows < 1000:
        return  # fewer rows than the first point is of: what the CDF says of them is not what bins say
    for first, count, hottest, coldest in zip(bins.first, bins.count, bins.hottest, bins.coldest, strict=True):
        some = rates[first : first + count]
        assert coldest * (1 - 1e-6) <= some.min()
        assert some.max() <= hottest * (1 + 1e-6)


@pytest.mark.parametrize("modulus", [1, 8, 64])
def test_sums_by_remainder(modulus: int) -> None:
    bins = RowRateBins.of(ZipfAccess(alpha=1.0), 2000)
    assert bins is not None
    values = np.random.default_rng(0).random(len(bins.count))
    one_by_one = np.repeat(values, bins.count)
    want = [one_by_one[remainder::modulus].sum() for remainder in range(modulus)]
    np.testing.assert_allclose(bins.by_remainder(values, modulus), want)


def test_statistics_that_do_not_report_rows_apart_have_no_bins() -> None:
    histogram = ReuseHistogram(distinct_rows=(5.0,) + (0.0,) * 16)
    assert RowRateBins.of(histogram, 100) is None
    assert RowRateBins.of(MissRatioCurve(points=((1.0, 0.0),)), 100) is None


def test_edges() -> None:
    """No lookups need room for one id, and unique ids are at most the rows of a SparseCore."""
    zipf = ZipfAccess(alpha=1.0)
    assert limits(lookups(zipf, 100, 0.0), cores=8) == Limits(max_ids=1, max_unique_ids=1)
    few = limits(lookups(zipf, 100, 5000.0), cores=2)
    assert 2500 < few.max_ids < 5600
    assert few.max_unique_ids == 50
    assert limits(lookups(zipf, 100, 5000.0), cores=8).max_unique_ids == 13


def test_limits_grow_with_lookups_and_with_care() -> None:
    zipf = ZipfAccess(alpha=1.0)
    some, more = (limits(lookups(zipf, 1000, n), cores=8) for n in (500.0, 600.0))
    careful = limits(lookups(zipf, 1000, 500.0), cores=8, drop=1e-9)
    assert some.max_ids < more.max_ids
    assert some.max_ids < careful.max_ids < 1.3 * some.max_ids
    assert some.max_unique_ids < min(more.max_unique_ids, careful.max_unique_ids)


def test_a_thousand_sparsecores_and_a_large_table() -> None:
    found = limits(lookups(ZipfAccess(alpha=1.0), 10**10, 1e5), cores=2**14)
    assert 1e5 / np.log(1e10) < found.max_ids < 2e4
    assert found.max_unique_ids < 60
