"""The compact form of a plan document: equal shards and equal loads of ranks are written once.

The long form lists every shard of every rank: a copy of a table on 1,024 ranks is 1,024 objects. In the compact form

* ``shards`` of a table is a list of groups. The shards of a group have equal sizes and follow one another: each is a
  copy of the first, or begins with the row, or with the column, where the one before ends (``cut``). ``ranks`` lists
  their ranks in order, such as ``0-1023`` or ``17,903,4-7``;
* ``ranks`` of the plan, and ``by_rank`` and ``by_host`` of its checkpoint, have columns in the place of rows: a list
  has the value of each row, any other value is that of all rows, and an object has a column in every field.

All else is as in the long form, which is expanded from here without loss. Nothing is imported but the standard library:
the launcher's client has a copy of this file.
"""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

FORM, COMPACT = "form", "compact"
RANKS, CUT = "ranks", "cut"
ROWS, COLUMNS = "rows", "columns"
#: Of a group: the offset that grows from shard to shard, and the size that it grows by.
STEPS = {ROWS: ("row_offset", "num_rows"), COLUMNS: ("column_offset", "num_columns")}
#: Ranks in order: single ones, and the first and the last of those that follow one another.
RANKS_PATTERN = r"^[0-9]{1,7}(-[0-9]{1,7})?(,[0-9]{1,7}(-[0-9]{1,7})?)*$"
#: More shards than any cluster has ranks for; a text of a few characters must not ask for all memory.
MAX_SHARDS_OF_GROUP = 1_000_000
TABLES, SHARDS, CHECKPOINT = "tables", "shards", "checkpoint"
#: Of the checkpoint: what stands by columns, and the field that numbers the rows.
CHECKPOINT_COLUMNS = {"by_rank": "rank", "by_host": "host"}
#: In the place of a value that differs from shard to shard; in the strings of a JSON text it is escaped.
_MARK = "\0"
#: Made once: a large plan has half a million values that are written on their own.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def is_compact(document: object) -> bool:
    """Whether a plan document has the compact form."""
    return isinstance(document, Mapping) and document.get(FORM) == COMPACT


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks as a group lists them: ``"0-3,7,5"`` for 0, 1, 2, 3, 7, 5."""
    if len(ranks) > 1 and list(ranks) == list(range(ranks[0], ranks[0] + len(ranks))):  # most groups are one range
        return f"{ranks[0]}-{ranks[-1]}"
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def rank_ranges(text: str) -> list[range]:
    """Return the ranges of ranks that a group lists, of which none is empty; raises like :func:`ranks_of`."""
    return list(_read_ranges(text))


@functools.lru_cache(maxsize=4096)  # thousands of tables lie on the same ranks
def _read_ranges(text: str) -> tuple[range, ...]:
    if not re.fullmatch(RANKS_PATTERN, text):
        raise ValueError("ranks are listed like 0-1023 or 17,903,4-7")
    ends = [(int(first), int(last or first)) for first, _, last in (one.partition("-") for one in text.split(","))]
    found = [range(first, last + 1) for first, last in ends]
    if not all(found):
        raise ValueError("a range of ranks ends before it begins")
    if sum(map(len, found)) > MAX_SHARDS_OF_GROUP:
        raise ValueError(f"a group has more than {MAX_SHARDS_OF_GROUP:,} shards")
    return tuple(found)


def ranks_of(text: str) -> list[int]:
    """Return the ranks that a group lists.

    Raises
    ------
    ValueError
        It is no list of ranks, or has more than ``MAX_SHARDS_OF_GROUP``.
    """
    return [rank for one in rank_ranges(text) for rank in one]


def num_shards(group: Mapping[str, Any]) -> int:
    """Return the number of shards of a group; raises like :func:`ranks_of`."""
    return sum(map(len, rank_ranges(group[RANKS])))


def shards_of(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the shards of a table in order, as the long form lists them; raises like :func:`ranks_of`."""
    shards = []
    for group in groups:
        shared = _shared(group)
        shards += [_shard(group, shared, number, rank) for number, rank in enumerate(ranks_of(group[RANKS]))]
    return shards


def shards_on(rank: int, groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the shards of a table that are on a rank, in order; no other becomes an object."""
    shards = []
    for group in groups:
        before = 0
        for one in rank_ranges(group[RANKS]):
            if rank in one:
                shards.append(_shard(group, _shared(group), before + rank - one[0], rank))
            before += len(one)
    return shards


def rows_of(columns: Any) -> list[Any]:
    """Return the rows that columns stand for; a list is returned unchanged.

    Raises
    ------
    ValueError
        Its lists are not equally long, or there is none.
    """
    if isinstance(columns, list):
        return columns
    sizes = {len(values) for values in _lists_in(columns)}
    if len(sizes) != 1:
        raise ValueError("the lists of the columns are not equally long" if sizes else "the columns have no list")
    return _rows(columns, sizes.pop())


def long_value(key: str, value: Any) -> Any:
    """Return a member of the plan, other than ``tables``, as the long form has it; raises like :func:`rows_of`."""
    if key == RANKS:
        return rows_of(value)
    if key != CHECKPOINT or value is None:
        return value
    return {**value, **{part: rows_of(value[part]) for part in CHECKPOINT_COLUMNS if part in value}}


def long_document(compact: Mapping[str, Any]) -> dict[str, Any]:
    """Return the long form of a plan in compact form.

    Raises
    ------
    ValueError
        A group lists no ranks, or too many; or columns are not equally long.
    KeyError, TypeError, AttributeError
        A part that is expanded has another shape.
    """
    document = {key: long_value(key, value) for key, value in compact.items() if key != FORM}
    document[TABLES] = [{**table, SHARDS: shards_of(table[SHARDS])} for table in compact[TABLES]]
    return document


def long_parts(
    compact: Mapping[str, Any], *, keys: Iterable[str] | None = None, without: Sequence[str] = ()
) -> Iterator[bytes]:
    """Yield the canonical bytes of the long form of a plan in compact form, table by table.

    Only the members ``keys`` of the plan, and of a shard all but ``without``. Raises like :func:`long_document`.
    """
    yield b"{"
    chosen = sorted(key for key in (compact if keys is None else keys) if key != FORM)
    for number, key in enumerate(chosen):
        yield f"{',' if number else ''}{_text(key)}:".encode()
        if key == TABLES:
            yield from _tables_parts(compact[TABLES], without)
        else:
            yield _text(long_value(key, compact[key])).encode()
    yield b"}"


def _shared(group: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the shards of a group have in common, and the offset of the first of them."""
    return {key: value for key, value in group.items() if key not in (RANKS, CUT, *without)}


def _shard(group: Mapping[str, Any], shared: Mapping[str, Any], number: int, rank: int) -> dict[str, Any]:
    if group[CUT] is None:
        return {**shared, "rank": rank}
    offset, size = STEPS[group[CUT]]
    return {**shared, "rank": rank, offset: shared[offset] + number * shared[size]}


def _lists_in(columns: Mapping[str, Any]) -> Iterator[list[Any]]:
    for value in columns.values():
        if isinstance(value, list):
            yield value
        elif isinstance(value, Mapping):
            yield from _lists_in(value)


def _rows(column: Any, num_rows: int) -> list[Any]:
    if isinstance(column, list):
        return column
    if not isinstance(column, Mapping):
        return [column] * num_rows
    fields = {key: _rows(value, num_rows) for key, value in column.items()}
    return [{key: values[row] for key, values in fields.items()} for row in range(num_rows)]


def _text(value: object) -> str:
    """Return canonical JSON, as that of all documents."""
    return _CANONICAL.encode(value)


def _tables_parts(tables: Iterable[Mapping[str, Any]], without: Sequence[str]) -> Iterator[bytes]:
    before = "["
    for table in tables:
        listed = f"[{','.join([_shards_text(group, without) for group in table[SHARDS]])}]"
        members = [f"{_text(key)}:{listed if key == SHARDS else _text(table[key])}" for key in sorted(table)]
        yield f"{before}{{{','.join(members)}}}".encode()
        before = ","
    yield b"[]" if before == "[" else b"]"


def _shards_text(group: Mapping[str, Any], without: Sequence[str]) -> str:
    """Return the shards of a group, with a comma between two: one text with other numbers in it for each of them."""
    shared = _shared(group, without)
    ranks, offset = ranks_of(group[RANKS]), None
    if group[CUT] is not None:
        offset, size = STEPS[group[CUT]]
        offsets = [shared[offset] + number * shared[size] for number in range(len(ranks))]
    members = [
        f"{_text(key)}:{_MARK if key in ('rank', offset) else _text(shared[key])}" for key in sorted({*shared, "rank"})
    ]
    first, *middle, last = f"{{{','.join(members)}}}".split(_MARK)
    if offset is None:
        texts = list(map(str, ranks))
    else:
        pairs = zip(offsets, ranks, strict=True) if offset < "rank" else zip(ranks, offsets, strict=True)
        texts = [f"{a}{middle[0]}{b}" for a, b in pairs]
    return first + f"{last},{first}".join(texts) + last
