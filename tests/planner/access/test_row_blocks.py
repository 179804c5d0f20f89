"""Shares of row blocks, by hand and against rows drawn one by one."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Floats
from planner.access.cache_misses import MissCurves
from planner.access.distinct_rows import expected_distinct_rows
from planner.access.row_blocks import RowBlocks
from planner.domain.problem.access import AccessCdf, AccessStatistics, IdOrder, RowCdf, ZipfAccess

LOOKUPS = np.array([5_000.0])


def blocks_of(ids: IdOrder | RowCdf, access: AccessStatistics | None = None, rows: int = 1_000) -> RowBlocks:
    distinct = expected_distinct_rows([access], [rows], LOOKUPS[:, None])[:, 0]
    misses = MissCurves(accesses=(access,), num_rows=(rows,), num_lookups=LOOKUPS, distinct_rows=distinct)
    return RowBlocks(ids=(ids,), accesses=(access,), num_rows=(rows,), num_lookups=LOOKUPS, misses=misses)


def heaviest(blocks: RowBlocks, num_blocks: int) -> tuple[float, float]:
    lookups, distinct = blocks.heaviest(np.array([0]), np.array([num_blocks]))
    return float(lookups[0]), float(distinct[0])


@pytest.mark.parametrize("ids", ["hashed", "unknown"])
def test_blocks_are_equal_where_nothing_else_is_known(ids: IdOrder) -> None:
    assert heaviest(blocks_of(ids, ZipfAccess(alpha=1.2)), 7) == (7.0, 7.0)


def test_a_given_curve_by_hand() -> None:
    """70% of the lookups go to the first 250 rows: blocks of 500 have 70 + 10 and 20%."""
    cdf = RowCdf(lookups=((0.25, 0.7), (1.0, 1.0)), distinct=((0.5, 0.6), (1.0, 1.0)))
    blocks = blocks_of(cdf)
    shares = blocks.shares(0, 2)
    np.testing.assert_allclose(shares.lookups, [0.8, 0.2])
    np.testing.assert_allclose(shares.distinct, [0.6, 0.4])
    assert heaviest(blocks, 2) == pytest.approx((1 / 0.8, 1 / 0.6))
    assert heaviest(blocks, 1) == (1.0, 1.0)
    assert blocks.lookups_of(0, np.array([250]), np.array([750]))[0] == pytest.approx(0.2)


def test_without_distinct_rows_they_are_spread_as_the_lookups() -> None:
    assert heaviest(blocks_of(RowCdf(lookups=((0.5, 0.9), (1.0, 1.0)))), 2) == pytest.approx((1 / 0.9, 1 / 0.9))


def test_the_last_block_is_shorter() -> None:
    """Ten rows, looked up alike, in blocks of 4, 4 and 2."""
    shares = blocks_of(RowCdf(lookups=((1.0, 1.0),)), rows=10).shares(0, 3)
    np.testing.assert_allclose(shares.rows, [0.4, 0.4, 0.2])
    np.testing.assert_allclose(shares.lookups, [0.4, 0.4, 0.2])


@pytest.mark.parametrize("alpha", [0.5, 1.05, 1.5])
def test_sorted_rows_have_the_shares_of_their_ranks(alpha: float) -> None:
    """Against the sums over all rows."""
    weight = np.arange(1, 10_001) ** -alpha
    chance = weight / weight.sum()
    touched = -np.expm1(LOOKUPS[0] * np.log1p(-chance))
    shares = blocks_of("frequency_sorted", ZipfAccess(alpha=alpha), 10_000).shares(0, 8)
    np.testing.assert_allclose(shares.lookups, chance.reshape(8, -1).sum(axis=1), rtol=0.01)
    np.testing.assert_allclose(shares.distinct, touched.reshape(8, -1).sum(axis=1) / touched.sum(), rtol=0.01)


def missed(blocks: RowBlocks, num_blocks: int, load_factor: float) -> float:
    return float(blocks.missed(np.array([0]), np.array([num_blocks]), np.array([load_factor]))[0])


def lru_misses(chance: Floats, slots: int, steps: int) -> float:
    """Distinct rows of a step that an LRU cache of so many rows misses, as a share; rows are drawn step by step."""
    rng = np.random.default_rng(3)
    last = np.full(len(chance), -1.0)
    missed_rows = touched_rows = 0
    for step in range(steps):
        touched = np.flatnonzero(rng.random(len(chance)) < chance)
        held = np.argsort(-last, kind="stable")[:slots]
        if step >= steps // 2:
            missed_rows += len(np.setdiff1d(touched, held[last[held] >= 0]))
            touched_rows += len(touched)
        last[touched] = step + rng.random(len(touched))
    return missed_rows / touched_rows


@pytest.mark.parametrize("load_factor", [0.2, 0.5])
def test_the_cache_of_the_first_sorted_block(load_factor: float) -> None:
    weight = np.arange(1, 1_001) ** -1.1
    chance = -np.expm1(LOOKUPS[0] * np.log1p(-weight / weight.sum()))[:250]
    found = missed(blocks_of("frequency_sorted", ZipfAccess(alpha=1.1)), 4, load_factor)
    assert found == pytest.approx(lru_misses(chance, round(250 * load_factor), 200), abs=0.02)


def test_rows_at_the_front_share_the_slots_of_their_block() -> None:
    """All lookups go to 100 rows of the first quarter: 150 slots hold them all, and 50 of 250 rows as 50 of 1,000."""
    front = AccessCdf(points=((0.1, 1.0), (1.0, 1.0)))
    blocks = blocks_of(RowCdf(lookups=((0.1, 1.0), (1.0, 1.0))), front)
    assert missed(blocks, 4, 0.6) == pytest.approx(0.0, abs=1e-9)
    (whole,) = blocks.misses.missed_of(0, np.array([0.05]))
    assert missed(blocks, 4, 0.2) == pytest.approx(float(whole))
    assert missed(blocks_of("unknown", front), 4, 0.2) < missed(blocks, 4, 0.2)


def test_what_no_cache_and_no_statistics_say_stays_unknown() -> None:
    cdf = RowCdf(lookups=((0.5, 0.9), (1.0, 1.0)))
    assert np.isnan(missed(blocks_of(cdf), 4, 0.2))
    assert np.isnan(missed(blocks_of(cdf, ZipfAccess(alpha=1.0)), 4, np.nan))


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (((0.5, 0.5),), "a last point"),
        (((0.5, 0.5), (0.5, 0.6), (1.0, 1.0)), "increasing row fractions"),
        (((0.5, 0.5), (0.6, 0.4), (1.0, 1.0)), "never fall"),
        (((0.0, 0.0), (1.0, 1.0)), r"\(0, 1\]"),
    ],
)
def test_a_curve_that_is_none_is_refused(points: tuple[tuple[float, float], ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RowCdf(lookups=points)
    with pytest.raises(ValueError, match=reason):
        replace(RowCdf(lookups=((1.0, 1.0),)), distinct=points)
