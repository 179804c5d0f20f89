"""Access statistics of a made-up stream of ids: time, memory, errors, and whether merged sketches equal one.

    python benchmarks/tiers/sketches.py [--lookups 100000000] [--rows 20000000] [--alpha 1.05] [--seed 0]
    python benchmarks/tiers/sketches.py --accuracy [--seed 0]

The first form streams ids of one table from memory (drawing them is not timed), once into one sketch
and trace by trace into those of eight workers. The second sets distinct rows and miss ratios next to exact
ones: a true LRU cache, simulated over streams of several kinds, of which the second half counts.
"""

import argparse
import resource
import time
from collections.abc import Callable, Iterator

import numba
import numpy as np
from numpy.typing import NDArray

from api.specs.references.statistics_document import Statistics, merge_statistics
from cost_models.arrays import Ints
from planner.access.sketches.collector import Collector
from planner.access.sketches.drift import rates_of
from planner.domain.formats.canonical_json import canonical_bytes

Draw = Callable[[np.random.Generator, int], Ints]

BATCH, WORKERS = 65_536, 8
TRACE_BATCHES = 64  # of one file, which one worker reads
ACCURACY_ROWS, ACCURACY_LOOKUPS = 1_000_000, 8_000_000
NUM_SIZES = 25


def inverse_table(weights: NDArray[np.float64]) -> Draw:
    """Draw rows by their weights, through a table of the inverse CDF's first steps."""
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]

    def draw(random: np.random.Generator, num: int) -> Ints:
        return np.minimum(np.searchsorted(cumulative, random.random(num)), len(weights) - 1)

    return draw


def zipf(alpha: float, rows: int) -> Draw:
    """Row i with probability ~ (i + 1) ** -alpha."""
    return inverse_table(np.arange(1, rows + 1, dtype=np.float64) ** -alpha)


def log_normal(sigma: float, rows: int) -> Draw:
    """Rows with log-normal intensities, as real tables have them."""
    return inverse_table(np.exp(np.random.default_rng(5).normal(0.0, sigma, rows)))


def sessions(rows: int, *, repeats: int, span: int) -> Draw:
    """Every id of a Zipf stream comes again ``repeats`` times within ``span`` lookups: temporal locality."""
    first = zipf(0.8, rows)

    def draw(random: np.random.Generator, num: int) -> Ints:
        ids = np.repeat(first(random, num // repeats + 1), repeats)[:num]
        late = np.arange(len(ids)) + random.integers(0, span, len(ids))
        return ids[np.argsort(late, kind="stable")]

    return draw


def drifting(rows: int) -> Draw:
    """Zipf over rows of which another 1% becomes hot with every million lookups."""
    hot = zipf(1.05, rows)

    def draw(random: np.random.Generator, num: int) -> Ints:
        return (hot(random, num) + np.arange(num) // 1_000_000 * (rows // 100)) % rows

    return draw


def scattered(ids: Ints, rows: int) -> Ints:
    """Ids whose hotness is not their order: a bijection of [0, rows) where rows is prime to the factor."""
    return (ids * 7_919 + 12_345) % rows


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def lru_depths(ids: Ints, num_rows: int) -> Ints:
    """Return for every lookup how many distinct rows came since the row's last one; -1 for its first."""
    num = len(ids)
    tree, last = np.zeros(num + 1, dtype=np.int64), np.full(num_rows, -1, dtype=np.int64)
    depths = np.empty(num, dtype=np.int64)
    for now in range(num):
        before = last[ids[now]]
        depths[now] = -1
        if before >= 0:
            count, place = 0, now
            while place > 0:
                count += tree[place]
                place -= place & -place
            place = before
            while place > 0:
                count -= tree[place]
                place -= place & -place
            depths[now] = count
            place = before + 1
            while place <= num:
                tree[place] -= 1
                place += place & -place
        last[ids[now]] = now
        place = now + 1
        while place <= num:
            tree[place] += 1
            place += place & -place
    return depths


def batches(draw: Draw, rows: int, lookups: int, seed: int) -> Iterator[Ints]:
    """Yield the batches of a stream."""
    random = np.random.default_rng(seed)
    for start in range(0, lookups, BATCH):
        yield scattered(draw(random, min(BATCH, lookups - start)), rows)


def stream(lookups: int, rows: int, alpha: float, seed: int) -> bool:
    """Print time, memory and errors of one long stream; return whether every target is reached."""
    one = Collector("t")
    workers = [Collector("t") for _ in range(WORKERS)]
    seen = np.zeros(rows, dtype=np.bool_)
    seconds = 0.0
    for number, ids in enumerate(batches(zipf(alpha, rows), rows, lookups, seed)):
        worker = workers[number // TRACE_BATCHES % WORKERS]
        began = time.process_time()
        one.add(ids)
        seconds += time.process_time() - began
        worker.add(ids)
        if (number + 1) % TRACE_BATCHES == 0:
            one.end_trace()
            worker.end_trace()
        seen[ids] = True
    sketch = one.sketch()
    single = Statistics(sketches={"t": sketch})
    merged = merge_statistics(Statistics(sketches={"t": worker.sketch()}) for worker in workers)
    error = sketch.distinct_rows / int(seen.sum()) - 1.0
    (table,) = single.document["tables"]  # type: ignore[misc]
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    is_equal = single.canonical == merged.canonical
    print(f"{lookups:,} lookups of {rows:,} rows, Zipf {alpha:g}")
    print(f"  seconds of one core     {seconds:10.1f}   ({seconds / lookups * 1e9:.0f} ns a lookup)")
    print(f"  peak memory             {peak_bytes / 1e6:10.0f} MB, of which {17 * rows / 1e6:.0f} MB draw the ids")
    print(f"  distinct rows           {sketch.distinct_rows:10,.0f} of {int(seen.sum()):,}: {error:+.2%}")
    print(f"  bytes of the sketch     {len(canonical_bytes(table)):10,}")
    print(f"  {WORKERS} workers merged        {'equal' if is_equal else 'DIFFERENT'}, byte by byte")
    return is_equal and abs(error) < 0.02 and seconds < 100 and peak_bytes < 500e6


def accuracy(seed: int) -> bool:
    """Print the errors of distinct rows and miss ratios; return whether those of independent lookups are within 3%."""
    rows = ACCURACY_ROWS
    kinds: dict[str, tuple[Draw, bool]] = {
        **{f"zipf {alpha:g}": (zipf(alpha, rows), True) for alpha in (0.6, 0.8, 1.0, 1.2, 1.4)},
        **{f"log-normal {sigma:g}": (log_normal(sigma, rows), True) for sigma in (1.6, 3.0)},
        "uniform": (zipf(0.0, rows), True),
        "sessions, 4 within 20k": (sessions(rows, repeats=4, span=20_000), False),
        "sessions, 4 within 1M": (sessions(rows, repeats=4, span=1_000_000), False),
        "drifting": (drifting(rows), False),
    }
    print(f"{'stream':<24} {'distinct':>9} {'worst miss error':>17}  at cache rows (true, estimated)")
    is_within = True
    for name, (draw, is_independent) in kinds.items():
        ids = scattered(draw(np.random.default_rng(seed), ACCURACY_LOOKUPS), rows)
        collector = Collector("t")
        for start in range(0, len(ids), BATCH):
            collector.add(ids[start : start + BATCH])
        sketch = collector.sketch()
        rates = rates_of(sketch)
        assert rates is not None
        num_distinct = len(np.unique(ids))
        depths = lru_depths(ids, rows)[len(ids) // 2 :]
        sizes = np.geomspace(1000, num_distinct * 0.9, NUM_SIZES)
        known = np.sort(depths[depths >= 0])
        # A lookup hits where fewer rows than the cache holds came since; first lookups are no fault of the cache.
        exact = 1.0 - np.searchsorted(known, sizes.astype(np.int64)) / len(depths)
        errors = rates.miss_ratio(sizes) - exact
        worst = int(np.argmax(np.abs(errors)))
        distinct_error = sketch.distinct_rows / num_distinct - 1.0
        print(
            f"{name:<24} {distinct_error:>+9.2%} {errors[worst]:>+17.2%}  {sizes[worst]:>9,.0f} "
            f"({exact[worst]:.1%}, {exact[worst] + errors[worst]:.1%})"
        )
        if is_independent:
            is_within &= abs(float(errors[worst])) < 0.03 and abs(distinct_error) < 0.02
    return is_within


def main() -> None:
    """Run what the arguments ask for; exit with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lookups", type=int, default=100_000_000)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--alpha", type=float, default=1.05)
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    reached = (
        accuracy(chosen.seed) if chosen.accuracy else stream(chosen.lookups, chosen.rows, chosen.alpha, chosen.seed)
    )
    raise SystemExit(0 if reached else 1)


if __name__ == "__main__":
    main()
