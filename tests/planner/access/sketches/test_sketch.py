"""Sketches: merging is exact, counts are exact, and what contradicts itself is refused."""

from dataclasses import replace

import numpy as np
import pytest

from planner.access.sketches.collector import Collector
from planner.access.sketches.sketch import OtherSketch, TableSketch, Thinned, merge
from planner.access.sketches.windows import NUM_PARTS
from tests.support.planning.id_streams import in_batches, sketched, zipf


def same(first: TableSketch, second: TableSketch) -> bool:
    arrays = ("reuse_rows", "reuse_lookups", "registers", "hot_rows", "hot_most", "cells", "windows")
    numbers = ("table", "hash_seed", "samples", "batches", "lookups", "largest_row")
    return (
        all(np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays)
        and all(getattr(first, name) == getattr(second, name) for name in numbers)
        and all(
            (a.batches, a.lookups) == (b.batches, b.lookups) and np.array_equal(a.registers, b.registers)
            for a, b in zip(first.thinned, second.thinned, strict=True)
        )
    )


@pytest.mark.parametrize("alpha", [0.0, 0.8, 1.3])
def test_eight_workers_merge_into_one(alpha: float) -> None:
    batches = in_batches(zipf(alpha, 5_000, 200_000), 1_000)
    whole = sketched(batches, batches_of_trace=5)  # 40 traces, five for each worker
    of_worker = [[batch for number, batch in enumerate(batches) if number // 5 % 8 == worker] for worker in range(8)]
    parts = [sketched(some, batches_of_trace=5) for some in of_worker]
    forward, backward = parts[0], parts[-1]
    for part in parts[1:]:
        forward = merge(forward, part)
    for part in reversed(parts[:-1]):
        backward = merge(backward, part)
    assert same(forward, whole)
    assert same(backward, whole)
    assert whole.thinned[0].batches > whole.thinned[1].batches > 0
    assert whole.windows[NUM_PARTS, 0] == 40  # one run of four batches in each trace


def test_order_within_a_batch_matters_to_its_windows_alone() -> None:
    batches = in_batches(zipf(1.0, 500, 10_000), 1_000)
    given, in_order = sketched(batches), sketched([np.sort(batch) for batch in batches])
    assert np.all(given.windows[5:NUM_PARTS, 2] > in_order.windows[5:NUM_PARTS, 2])
    assert same(replace(given, windows=in_order.windows), in_order)


def test_the_reuse_histogram_is_exact() -> None:
    # rows 1 to 5 are looked up 1, 2, 3, 5 and 40,000 times
    ids = np.repeat([1, 2, 3, 4, 5], [1, 2, 3, 5, 40_000])
    sketch = sketched([ids, np.array([9])])
    assert {k: n for k, n in enumerate(sketch.reuse_rows.tolist()) if n} == {0: 2, 1: 1, 2: 1, 3: 1, 16: 1}
    assert sketch.reuse_lookups.sum() == sketch.lookups == 40_012
    assert sketch.distinct_rows_per_batch == 3.0
    assert sketch.largest_row == 9


def test_heavy_hitters_are_found_with_their_lookups() -> None:
    ids = zipf(1.2, 20_000, 400_000)
    rows, counts = np.unique(ids, return_counts=True)
    exact = dict(zip(rows.tolist(), counts.tolist(), strict=True))
    hottest = rows[np.argsort(-counts)][:10].tolist()
    found = sketched(in_batches(ids, 4_000)).heavy_hitters
    assert set(hottest) <= {hit.row for hit in found}
    for hit in found:
        if hit.row in hottest:
            assert hit.lookups == pytest.approx(exact[hit.row], rel=0.1)


def test_an_id_that_is_no_row_is_refused_and_nothing_is_taken_in() -> None:
    collector = Collector("t")
    collector.add(np.array([1, 2]))
    before = collector.sketch()
    for wrong in (-1, 2**40):
        with pytest.raises(ValueError, match=f"id {wrong} at place 1"):
            collector.add(np.array([0, wrong]))
    assert same(collector.sketch(), before)


def test_a_table_that_is_never_looked_up() -> None:
    sketch = sketched([np.zeros(0, dtype=np.int64)] * 3)
    assert (sketch.batches, sketch.lookups, sketch.distinct_rows, sketch.heavy_hitters) == (3, 0, 0.0, ())


def test_other_sketches_are_not_merged() -> None:
    batches = [np.array([1])]
    with pytest.raises(OtherSketch, match="tables t and u"):
        merge(sketched(batches), sketched(batches, table="u"))
    with pytest.raises(OtherSketch, match="hash_seed is 0 in one and 1"):
        merge(sketched(batches), sketched(batches, seed=1))


def changed(array: np.ndarray, value: int) -> np.ndarray:
    copy = array.copy()
    copy.flat[0] += value
    return copy


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: {"reuse_lookups": changed(s.reuse_lookups, 1)}, "reuse.lookups sum to"),
        (lambda s: {"reuse_rows": changed(s.reuse_rows, 1)}, "bin 0 of reuse"),
        (lambda s: {"largest_row": 5}, "distinct rows, and there are at most 6"),
        (lambda s: {"largest_row": None}, "largest row exactly where"),
        (lambda s: {"largest_row": 2**40}, r"\[0, 2\^40\)"),
        (lambda s: {"lookups": -1}, r"in \[0, 2\^53\)"),
        (lambda s: {"samples": 0}, "samples and batches where"),
        (lambda s: {"cells": changed(s.cells, 1)}, "do not sum to the lookups"),
        (lambda s: {"hot_rows": s.hot_rows[::-1].copy()}, "the hottest first"),
        (lambda s: {"hot_most": changed(s.hot_most, 10**9)}, "at most all lookups"),
        (lambda s: {"thinned": s.thinned[::-1]}, "more than the level before"),
        (lambda s: {"thinned": (replace(s.thinned[0], batches=s.batches + 1), *s.thinned[1:])}, "level 1"),
        (
            lambda s: {"thinned": (Thinned(batches=0, lookups=0, registers=s.thinned[0].registers), *s.thinned[1:])},
            "level 1",
        ),
        (lambda s: {"registers": np.zeros_like(s.registers)}, "registers of the rows"),
        (lambda s: {"windows": changed(s.windows, 1)}, "windows of size 0"),
        (lambda s: {"windows": s.windows[1:]}, "windows of 14 sizes"),
        (lambda s: {"hash_seed": 2**32}, "hash_seed"),
        (lambda s: {"hash_seed": 1}, "the hottest first"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(change, reason: str) -> None:  # type: ignore[no-untyped-def]
    sketch = sketched(in_batches(zipf(1.0, 5_000, 50_000), 500))
    with pytest.raises(ValueError, match=reason):
        replace(sketch, **change(sketch))
