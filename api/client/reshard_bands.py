# A copy of planner/domain/formats/reshard_bands.py: edit that file, then run make generated.
"""What every rank of a new plan reads of a checkpoint that was written under an old one.

A reshard map lists bands. A band is a rectangle of a table that a run of new shards and a run of old shards have in
common: in both the shards lie one below the other, equally many rows each, on ranks in order. All reads follow from
that, so that a table in a thousand row blocks has a few bands, and not thousands of reads. New shards that are copies
read all of the band each; of old copies one is stored, that of the first rank.

Nothing is imported but the standard library and the compact form of plans: the launcher's client has a copy of this
file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .compact_form import CUT, RANKS, ROWS, rank_ranges, shards_of

#: Of a band: the new shards, and the old ones.
TO, FROM = "to", "from"
COPIES = "copies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A rectangle of a table that a rank reads: part of one new shard, and of one stored one."""

    rank: int
    old_rank: int
    row_offset: int  # of the table
    num_rows: int
    column_offset: int
    num_columns: int
    shard_row_offset: int  # first row and column of the new shard
    shard_column_offset: int
    old_row_offset: int  # first row and column of the stored one
    old_column_offset: int


def bands_between(old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the bands of a table from the groups of its shards in the compact form of both plans.

    Raises like :func:`planner.domain.formats.compact_form.ranks_of`.
    """
    stored = [{**one, RANKS: _first(one[RANKS]), COPIES: False} if one[COPIES] else one for one in _runs(old)]
    edges = [_edges(source) for source in stored]
    bands = []
    for target in _runs(new):
        left, right, top, bottom = _edges(target)
        for source, (from_left, from_right, from_top, from_bottom) in zip(stored, edges, strict=True):
            # Written out: a table that is cut by columns on both sides has many pairs, and few that share a cell.
            if from_left >= right or left >= from_right or from_top >= bottom or top >= from_bottom:
                continue
            row, column = max(top, from_top), max(left, from_left)
            bands.append(
                {
                    "row_offset": row,
                    "num_rows": min(bottom, from_bottom) - row,
                    "column_offset": column,
                    "num_columns": min(right, from_right) - column,
                    TO: target,
                    FROM: source,
                }
            )
    return bands


def reads_on(rank: int, bands: Iterable[Mapping[str, Any]]) -> Iterator[Read]:
    """Yield what a rank reads of a table, band by band, from the first row to the last."""
    for band in bands:
        target, source = band[TO], band[FROM]
        for place in _places_of(rank, target[RANKS]):
            block = 0 if target[COPIES] else place
            shard_row = target["row_offset"] + block * target["num_rows"]
            first = max(band["row_offset"], shard_row)
            end = min(band["row_offset"] + band["num_rows"], shard_row + target["num_rows"])
            while first < end:
                old_place = (first - source["row_offset"]) // source["num_rows"]
                old_row = source["row_offset"] + old_place * source["num_rows"]
                until = min(end, old_row + source["num_rows"])
                yield Read(
                    rank=rank,
                    old_rank=_rank_at(source[RANKS], old_place),
                    row_offset=first,
                    num_rows=until - first,
                    column_offset=band["column_offset"],
                    num_columns=band["num_columns"],
                    shard_row_offset=shard_row,
                    shard_column_offset=target["column_offset"],
                    old_row_offset=old_row,
                    old_column_offset=source["column_offset"],
                )
                first = until


def _runs(groups: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield shards that lie one below the other, or are copies; pieces that lie side by side one by one."""
    for group in groups:
        several = len(rank_ranges(group[RANKS])) > 1 or "-" in group[RANKS]
        one_by_one = several and group[CUT] not in (None, ROWS)
        for part in shards_of([group]) if one_by_one else [group]:
            yield {
                RANKS: str(part["rank"]) if one_by_one else group[RANKS],
                COPIES: several and group[CUT] is None,
                **{key: part[key] for key in ("row_offset", "num_rows", "column_offset", "num_columns")},
            }


def _first(ranks: str) -> str:
    return str(rank_ranges(ranks)[0][0])


def _blocks(run: Mapping[str, Any]) -> int:
    """Return how many shards of a run lie one below the other."""
    return 1 if run[COPIES] else sum(map(len, rank_ranges(run[RANKS])))


def _edges(run: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Return the first column of a run and the one after its last, and the same of rows."""
    left, top = run["column_offset"], run["row_offset"]
    return left, left + run["num_columns"], top, top + _blocks(run) * run["num_rows"]


def _places_of(rank: int, ranks: str) -> Iterator[int]:
    """Yield the places at which a rank is in a list of ranks."""
    before = 0
    for one in rank_ranges(ranks):
        if rank in one:
            yield before + rank - one[0]
        before += len(one)


def _rank_at(ranks: str, place: int) -> int:
    """Return the rank at a place of a list of ranks."""
    for one in rank_ranges(ranks):
        if place < len(one):
            return one[place]
        place -= len(one)
    raise IndexError("a run has fewer shards than a band needs")
