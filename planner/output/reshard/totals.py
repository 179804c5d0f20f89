"""How much every rank reads, and how much is read of what every old rank wrote."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cost_models.arrays import Ints
from planner.domain.formats.compact_form import RANKS, ranks_of
from planner.domain.formats.reshard_bands import COPIES, FROM, TO


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the tables that were added."""

    # By rank of the new plan, (new ranks,).
    num_reads: Ints
    weight_bytes: Ints
    state_bytes: Ints
    stored_bytes: Ints  # weights and state, by rank of the old plan, (old ranks,)

    @classmethod
    def zeros(cls, *, old_world_size: int, new_world_size: int) -> Self:
        """Return the totals of no table."""
        reads, weights, state = (np.zeros(new_world_size, dtype=np.int64) for _ in range(3))
        return cls(
            num_reads=reads,
            weight_bytes=weights,
            state_bytes=state,
            stored_bytes=np.zeros(old_world_size, dtype=np.int64),
        )

    def add(
        self, bands: Iterable[Mapping[str, Any]], weight_cell_bytes: int, state_cell_bytes: int, state_row_bytes: int
    ) -> None:
        """Add the bands of a table."""
        for band in bands:
            target, source, columns = band[TO], band[FROM], band["num_columns"]
            ranks, old_ranks = _ranks(target[RANKS]), _ranks(source[RANKS])
            first, rows = _rows_of_blocks(band, target, len(ranks))
            np.add.at(self.weight_bytes, ranks, rows * (columns * weight_cell_bytes))
            np.add.at(self.state_bytes, ranks, rows * (columns * state_cell_bytes + state_row_bytes))
            last = (first + rows - 1 - source["row_offset"]) // source["num_rows"]
            reads = last - (first - source["row_offset"]) // source["num_rows"] + 1
            np.add.at(self.num_reads, ranks, np.where(rows > 0, reads, 0))
            _, stored_rows = _rows_of_blocks(band, source, len(old_ranks))
            row_bytes = columns * (weight_cell_bytes + state_cell_bytes) + state_row_bytes
            readers = len(ranks) if target[COPIES] else 1
            np.add.at(self.stored_bytes, old_ranks, stored_rows * (row_bytes * readers))


@functools.lru_cache(maxsize=4096)
def _ranks(text: str) -> Ints:
    return np.array(ranks_of(text), dtype=np.int64)


def _rows_of_blocks(band: Mapping[str, Any], run: Mapping[str, Any], num_ranks: int) -> tuple[Ints, Ints]:
    """Return the first row of each shard of a run inside a band, and how many of its rows the band has."""
    block = np.zeros(num_ranks, dtype=np.int64) if run[COPIES] else np.arange(num_ranks, dtype=np.int64)
    begin = run["row_offset"] + block * run["num_rows"]
    first = np.maximum(begin, band["row_offset"])
    end = np.minimum(begin + run["num_rows"], band["row_offset"] + band["num_rows"])
    return first, np.maximum(end - first, 0)
