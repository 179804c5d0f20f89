"""Streams of ids, and exact answers about them."""

import numpy as np

from cost_models.arrays import Ints
from planner.access.sketches.collector import Collector
from planner.access.sketches.sketch import TableSketch


def zipf(alpha: float, rows: int, lookups: int, seed: int = 0) -> Ints:
    """Rows by a power law, the hottest anywhere in the table."""
    random = np.random.default_rng(seed)
    cumulative = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -alpha)
    drawn = np.minimum(np.searchsorted(cumulative / cumulative[-1], random.random(lookups)), rows - 1)
    return np.random.default_rng(99).permutation(rows)[drawn]


def in_batches(ids: Ints, size: int) -> list[Ints]:
    """Cut a stream into batches."""
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def sketched(
    batches: list[Ints], *, table: str = "t", seed: int = 0, batches_of_trace: int | None = None
) -> TableSketch:
    """Sketch batches, of one trace or of traces of a number of batches."""
    collector = Collector(table, hash_seed=seed)
    for number, batch in enumerate(batches, start=1):
        collector.add(batch)
        if batches_of_trace is not None and number % batches_of_trace == 0:
            collector.end_trace()
    return collector.sketch()


def lru_miss_ratio(ids: Ints, cache_rows: int) -> float:
    """Misses of a true LRU cache over the second half of a stream."""
    cache: dict[int, None] = {}
    misses = 0
    for position, row in enumerate(ids.tolist()):
        if row in cache:
            del cache[row]
        else:
            misses += position >= len(ids) // 2
            if len(cache) == cache_rows:
                del cache[next(iter(cache))]
        cache[row] = None
    return misses / (len(ids) - len(ids) // 2)
