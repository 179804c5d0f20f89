"""Laws of collectives that are fitted without a third of the message sizes, and what they predict of these.

    python benchmarks/prices/reality/unseen_sizes.py --data ../shared/measured_gpu

Prints mean and 90th percentile of the errors, and the share of rows inside their intervals, by group. The sizes of a
series are left out in turn, but for its least and its largest: what lies between is asked for.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.prices.reality.collective_files import MeasuredCollective, read_folder
from benchmarks.prices.reality.collectives import ONE_DOMAIN, OVER_HOSTS, predicted
from benchmarks.prices.reality.fit_collective_laws import fitted_sets
from benchmarks.prices.reality.groups import figures_of, groups_of
from benchmarks.prices.reality.medians import with_medians
from benchmarks.prices.reality.row import PredictedRow

NUM_FOLDS = 3
#: A bandwidth or a start is fitted from so many sizes at least; series of fewer are never left out.
_FEWEST_SIZES = 5
_GROUPS = tuple(
    f"{whole}{part}"
    for whole in (ONE_DOMAIN, OVER_HOSTS)
    for part in ("", ": <64 KiB", ": <1 MiB", ": <64 MiB", ": >=32 MiB", ": >=64 MiB")
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public measurements")
    rows = list(read_folder(parser.parse_args(arguments).data))
    found = dict(groups_of(unseen_rows(rows)))
    for group in _GROUPS:
        if group in found:
            figures = figures_of(group, found[group])
            print(
                f"{group:<36} {figures.rows:>7,} rows  mean {figures.mean_relative_error:6.1%}"
                f"  p90 {figures.p90_relative_error:6.1%}  inside {figures.inside or 0:4.0%}"
            )


def unseen_rows(rows: Sequence[MeasuredCollective]) -> Iterator[PredictedRow]:
    """Yield the medians of all sizes that are left out, as laws predict them that were fitted to the others."""
    medians = [row for row in with_medians(rows) if not row.has_median]
    series: dict[tuple[object, ...], set[float]] = {}
    for row in medians:
        series.setdefault(_series(row), set()).add(row.message_bytes)
    turn = {
        (name, size): number % NUM_FOLDS
        for name, sizes in series.items()
        if len(sizes) >= _FEWEST_SIZES
        for number, size in enumerate(sorted(sizes)[1:-1])
    }
    for fold in range(NUM_FOLDS):
        unseen = [row for row in medians if turn.get((_series(row), row.message_bytes)) == fold]
        seen = [row for row in medians if turn.get((_series(row), row.message_bytes)) != fold]
        with contextlib.redirect_stdout(io.StringIO()):  # steps that fall are those of the whole fit
            sets = {laws.name: laws for laws in fitted_sets(seen)}
        yield from (predicted(row, sets.__getitem__) for row in unseen)


def _series(row: MeasuredCollective) -> tuple[object, ...]:
    return row.platform, row.operation, row.num_ranks, row.ranks_per_host, row.library


if __name__ == "__main__":
    main()
