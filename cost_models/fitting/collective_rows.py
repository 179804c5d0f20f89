"""Measured collectives in the form that laws are fitted to, and what in them contradicts any law."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, join_rows, take_rows
from cost_models.measurements.schema import Measurements

#: A larger message that is faster than a smaller one by more than this share is no noise.
NOISE = 0.2
#: A series in which more than this share of the steps fall by more than the noise is refused.
MOST_FALLING = 1 / 3
#: Fewer steps than this are too few to refuse a series for.
LEAST_STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRows:
    """Whole collectives of one operation; all arrays are of shape (num_rows,)."""

    message_bytes: Floats  # of one rank's whole buffer, as nccl-tests counts them
    num_ranks: Floats
    ranks_per_host: Floats
    seconds: Floats
    library: NDArray[np.str_]

    def of(self, here: NDArray[np.bool_]) -> "CollectiveRows":
        """Return some of the rows."""
        return take_rows(self, np.flatnonzero(here))

    @property
    def num_hosts(self) -> Floats:
        """Hosts of each row."""
        return self.num_ranks / self.ranks_per_host


def joined_rows(parts: Sequence[CollectiveRows]) -> CollectiveRows:
    """Return the rows of several parts one after another."""
    return join_rows(list(parts))


def collective_rows(rows: Measurements) -> Mapping[str, CollectiveRows]:
    """Return the collectives of measured rows by operation; of rows for each rank the slowest rank's is the time.

    Raises
    ------
    ValueError
        A row lacks bytes or seconds; the text names its launch.
    """
    rows = rows.take(np.flatnonzero(rows.text("kind") == "collective"))
    sent, received, seconds = rows.numbers("sent_bytes"), rows.numbers("received_bytes"), rows.numbers("seconds")
    size = np.maximum(sent, received)
    bad = ~(np.isfinite(size) & (size > 0) & np.isfinite(seconds) & (seconds > 0))
    if np.any(bad):
        raise ValueError(f"launch {rows.counts('launch')[bad][0]}: expected bytes and seconds > 0 of a collective")
    launch, operation = rows.counts("launch"), rows.text("operation")
    _, number = np.unique(launch, return_inverse=True)
    last = np.lexsort((seconds, number))
    slowest = last[np.append(np.diff(number[last]) > 0, True)] if len(last) else last
    largest = np.zeros(number.max(initial=-1) + 1)
    np.maximum.at(largest, number, size)
    found: dict[str, CollectiveRows] = {}
    for name in np.unique(operation[slowest]).tolist():
        here = slowest[operation[slowest] == name]
        found[name] = CollectiveRows(
            message_bytes=largest[number[here]],
            num_ranks=rows.counts("num_ranks")[here].astype(np.float64),
            ranks_per_host=rows.counts("ranks_per_host")[here].astype(np.float64),
            seconds=seconds[here],
            library=rows.text("library")[here],
        )
    return found


def falling_steps(rows: CollectiveRows, operation: str) -> Iterator[str]:
    """Yield where a series takes less time for more bytes, beyond noise.

    Raises
    ------
    ValueError
        So many steps of a series fall that its numbers are no measurement of one collective; the text has the number.
    """
    keys = np.stack([rows.num_ranks, rows.ranks_per_host], axis=1)
    for ranks, per_host in np.unique(keys, axis=0).tolist():
        for library in np.unique(rows.library[np.all(keys == (ranks, per_host), axis=1)]).tolist():
            series = rows.of(np.all(keys == (ranks, per_host), axis=1) & (rows.library == library))
            sizes = np.unique(series.message_bytes)
            times = np.array([np.median(series.seconds[series.message_bytes == size]) for size in sizes])
            falls = np.flatnonzero(times[1:] < (1 - NOISE) * times[:-1])
            if not len(falls):
                continue
            worst = falls[np.argmin(times[falls + 1] / times[falls])]
            text = (
                f"{operation} of {ranks:g} ranks, {library}: {len(falls)} of {len(sizes) - 1} steps fall by more than"
                f" {NOISE:.0%}; {sizes[worst + 1]:,.0f} bytes took {times[worst + 1]:.3g} s, and {sizes[worst]:,.0f}"
                f" bytes {times[worst]:.3g} s"
            )
            if len(sizes) - 1 >= LEAST_STEPS and len(falls) > MOST_FALLING * (len(sizes) - 1):
                raise ValueError(f"{text}: not the times of one collective by growing size")
            yield text
