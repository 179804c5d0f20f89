"""Whether the reads of a reshard map are right: every cell of every new shard once, from where the checkpoint has it.

Starts from the edges of rows alone: between two neighbouring edges of a band one new shard reads from one stored one.
Shares no code with :mod:`planner.domain.formats.reshard_bands`, which works reads out rank by rank.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.domain.formats.compact_form import ranks_of
from planner.domain.plan.shards import Shards

#: Ranks and rows have fewer: a place without columns is one number of 64 bits.
_MOST_ROWS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """The shards that reads go to, or come from, each given by rank, first row and first column."""

    rank: Ints
    row: Ints
    column: Ints

    def found_in(self, shards: Shards) -> Ints:
        """Return the shard of each read; -1 where there is none."""
        if self.column.any() or shards.column_offset.any():
            keys = zip(shards.rank.tolist(), shards.row_offset.tolist(), shards.column_offset.tolist(), strict=True)
            place = {key: index for index, key in enumerate(keys)}
            mine = zip(self.rank.tolist(), self.row.tolist(), self.column.tolist(), strict=True)
            return np.array([place.get(key, -1) for key in mine], dtype=np.int64)
        known, wanted = shards.rank * _MOST_ROWS + shards.row_offset, self.rank * _MOST_ROWS + self.row
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)]
        found: Ints = np.where(known[at] == wanted, at, -1)
        return found


def cover_issue(bands: Sequence[Mapping[str, Any]], old: Shards, new: Shards) -> str:
    """Return what is wrong with the bands of one table, in words; ``""`` if they are right.

    ``old`` and ``new`` are its shards under both plans. A read is right where it is all that its new shard and its
    stored one have in common, and no pair reads twice. Stored shards share no cells but for copies, of which one is
    read: reads that have as many cells as their shard then cover it once.
    """
    if not bands:
        return "nothing is read"
    parts = [_reads(band) for band in bands]
    first, end, left, right = (np.concatenate([part[0][i] for part in parts]) for i in range(4))
    sides = [
        _Side(
            **{
                name: np.concatenate([getattr(part[side], name) for part in parts])
                for name in ("rank", "row", "column")
            }
        )
        for side in (1, 2)
    ]
    target, source = sides[0].found_in(new), sides[1].found_in(old)
    if np.any(target < 0) or np.any(source < 0):
        return "a read is of no shard of its plan"
    is_common: Bools = first == np.maximum(new.row_offset[target], old.row_offset[source])
    is_common &= end == np.minimum(new.row_end[target], old.row_end[source])
    is_common &= left == np.maximum(new.column_offset[target], old.column_offset[source])
    is_common &= right == np.minimum(new.column_end[target], old.column_end[source])
    if not np.all(is_common):
        return "a read is not what its shards have in common"
    pairs = np.sort(target * len(old) + source)
    if np.any(pairs[1:] == pairs[:-1]):
        return "a shard reads twice from one stored shard"
    if _are_copies(old) and np.any(source != source[0]):
        return "several copies are read"
    cells = np.zeros(len(new), dtype=np.int64)
    np.add.at(cells, target, (end - first) * (right - left))
    if not np.array_equal(cells, new.num_rows * new.num_columns):
        return "a shard is not covered by what it reads"
    return ""


def _are_copies(shards: Shards) -> bool:
    """Whether all shards are the same cells."""
    return len(shards) > 1 and not np.any(np.diff(shards.columns[1:5], axis=1))


def _reads(band: Mapping[str, Any]) -> tuple[tuple[Ints, Ints, Ints, Ints], _Side, _Side]:
    """Return rows [first, end) and columns [left, right) of the reads of a band, and the shards on both sides."""
    target, source = band["to"], band["from"]
    begin, stop = band["row_offset"], band["row_offset"] + band["num_rows"]
    ranks, old_ranks = _ranks(target["ranks"]), _ranks(source["ranks"])
    edges = [np.array([begin, stop], dtype=np.int64), _edges_within(source, len(old_ranks), begin, stop)]
    if not target["copies"]:
        edges.append(_edges_within(target, len(ranks), begin, stop))
    every = np.sort(np.concatenate(edges))
    every = every[np.concatenate([[True], every[1:] != every[:-1]])]
    first, end = every[:-1], every[1:]
    readers = len(ranks) if target["copies"] else 1
    first, end = np.tile(first, readers), np.tile(end, readers)
    place = (first - target["row_offset"]) // target["num_rows"]
    reader = np.repeat(np.arange(readers), len(every) - 1) if target["copies"] else place
    old_place = (first - source["row_offset"]) // source["num_rows"]
    left = np.full(len(first), band["column_offset"], dtype=np.int64)
    is_known = (reader < len(ranks)) & (old_place < len(old_ranks)) & (old_place >= 0) & (reader >= 0)
    new_side = _Side(
        rank=np.where(is_known, ranks[np.clip(reader, 0, len(ranks) - 1)], -1),
        row=target["row_offset"] + (0 if target["copies"] else 1) * place * target["num_rows"],
        column=np.full(len(first), target["column_offset"], dtype=np.int64),
    )
    old_side = _Side(
        rank=np.where(is_known, old_ranks[np.clip(old_place, 0, len(old_ranks) - 1)], -1),
        row=source["row_offset"] + old_place * source["num_rows"],
        column=np.full(len(first), source["column_offset"], dtype=np.int64),
    )
    return (first, end, left, left + band["num_columns"]), new_side, old_side


def _edges_within(run: Mapping[str, Any], num_shards: int, begin: int, stop: int) -> Ints:
    """Return where shards of a run begin, or the last one ends, between the first row of a band and its end."""
    offset, rows = run["row_offset"], run["num_rows"]
    first, last = max(0, -((offset - begin) // rows)), min(num_shards, (stop - offset) // rows)
    edges: Ints = offset + rows * np.arange(first, last + 1, dtype=np.int64)
    return edges


@functools.lru_cache(maxsize=4096)
def _ranks(text: str) -> Ints:
    ranks: Ints = np.array(ranks_of(text), dtype=np.int64)
    ranks.flags.writeable = False
    return ranks
