"""Counts by position: they add up whoever saw what, and give the shares of row blocks."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Ints
from planner.access.sketches.positions import MOST_RANGES, Positions, range_bits, row_curve
from planner.access.sketches.sketch import TableSketch, merge
from tests.support.planning.id_streams import in_batches, sketched


def batches(seed: int, most: int = 100_000) -> list[Ints]:
    """Eight batches of which each reaches further than the one before."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, most >> (7 - number) + 1, 2_000) for number in range(8)]


def positions(sketch: TableSketch) -> Positions:
    assert sketch.positions is not None
    return sketch.positions


@pytest.mark.parametrize(("largest", "bits"), [(0, 0), (511, 0), (512, 1), (1023, 1), (1024, 2), (2**40 - 1, 31)])
def test_ranges_are_the_shortest_that_reach_the_largest_row(largest: int, bits: int) -> None:
    assert range_bits(largest) == bits
    assert largest >> bits < MOST_RANGES
    found = positions(sketched([np.array([0, largest])]))
    assert len(found.lookups) == (largest >> bits) + 1
    assert found.lookups.sum() == 2


def test_counts_are_those_of_the_ids() -> None:
    given = batches(0)
    found, ids = positions(sketched(given)), np.concatenate(given)
    width = 2 ** range_bits(int(ids.max()))
    np.testing.assert_array_equal(found.lookups, np.bincount(ids // width))
    rows = sum(np.bincount(np.unique(batch) // width, minlength=len(found.rows)) for batch in given)
    np.testing.assert_array_equal(found.rows, rows)


def test_workers_merge_into_one_in_any_order() -> None:
    given = batches(1)
    whole = sketched(given)
    parts = [sketched([batch]) for batch in given]  # of unequal largest rows
    for order in (range(8), reversed(range(8)), (3, 7, 0, 1, 2, 6, 5, 4)):
        first, *others = (parts[i] for i in order)
        for part in others:
            first = merge(first, part)
        np.testing.assert_array_equal(positions(first).lookups, positions(whole).lookups)
        np.testing.assert_array_equal(positions(first).rows, positions(whole).rows)


def test_sketches_without_positions_have_none_after_a_merge() -> None:
    new, idle = sketched(batches(2)), sketched([np.zeros(0, dtype=np.int64)])
    old = replace(new, positions=None)
    assert merge(old, new).positions is merge(new, old).positions is None
    for one, other in ((new, idle), (idle, new), (new, replace(idle, positions=None))):
        np.testing.assert_array_equal(positions(merge(one, other)).lookups, positions(new).lookups)
    assert merge(old, idle).positions is None


@pytest.mark.parametrize("num_blocks", [2, 3, 8])
def test_shares_of_blocks_are_those_of_the_ids(num_blocks: int) -> None:
    """Two humps and a flat part; the table has more rows than were looked up."""
    rng = np.random.default_rng(4)
    humps = [rng.normal(centre, 4_000, 30_000).astype(np.int64) for centre in (20_000, 70_000)]
    ids = np.concatenate([*humps, rng.integers(0, 90_000, 40_000)])
    ids = rng.permutation(ids[(ids >= 0) & (ids < 90_000)])
    sketch, num_rows = sketched(in_batches(ids, 5_000)), 100_000
    rows, lookups, distinct = row_curve(positions(sketch), int(ids.max()), num_rows, 1e-3)
    edges = np.arange(1, num_blocks) * -(-num_rows // num_blocks)
    np.testing.assert_allclose(
        np.interp(edges / num_rows, rows, lookups), [np.mean(ids < edge) for edge in edges], atol=2e-3
    )
    assert lookups[-1] == distinct[-1] == rows[-1] == 1.0
    assert np.all(np.diff(rows) > 0)
    assert np.all(np.diff(lookups) >= 0)
    assert len(rows) < 200


def test_a_straight_line_needs_two_points() -> None:
    sketch = sketched([np.arange(100_000)])
    rows, lookups, _ = row_curve(positions(sketch), 99_999, 200_000, 1e-6)
    np.testing.assert_allclose(rows, [0.5, 1.0])
    np.testing.assert_allclose(lookups, [1.0, 1.0])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: replace(p, lookups=p.lookups[:-1]), "ranges where the largest row"),
        (lambda p: replace(p, lookups=p.lookups + 1), "sum to .* lookups"),
        (lambda p: replace(p, rows=np.roll(p.rows, 1) * 2), "sum to .* distinct rows"),
        (lambda p: replace(p, lookups=np.sort(p.lookups)[::-1].copy(), rows=np.sort(p.rows)), "more distinct rows"),
    ],
)
def test_positions_of_another_sketch_are_refused(change, reason: str) -> None:  # type: ignore[no-untyped-def]
    sketch = sketched(batches(5))
    with pytest.raises(ValueError, match=reason):
        replace(sketch, positions=change(positions(sketch)))


def test_the_largest_row_is_in_the_last_range() -> None:
    sketch = sketched([np.array([0, 0, 1000])])
    moved = Positions(lookups=np.roll(positions(sketch).lookups, -1), rows=np.roll(positions(sketch).rows, -1))
    wrong = replace(moved, lookups=np.where(np.arange(501) == 0, 3, 0), rows=np.where(np.arange(501) == 0, 2, 0))
    with pytest.raises(ValueError, match="the last range"):
        replace(sketch, positions=wrong)
