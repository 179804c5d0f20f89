"""From the long form of plans to the compact one; :mod:`planner.domain.formats.compact_form` has the way back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cost_models.arrays import Bools, Ints
from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import DERIVED_SHARD_KEYS
from planner.domain.formats.compact_form import (
    CHECKPOINT,
    CHECKPOINT_COLUMNS,
    COLUMNS,
    COMPACT,
    CUT,
    FORM,
    RANKS,
    ROWS,
    SHARDS,
    STEPS,
    TABLES,
    is_compact,
    rank_ranges,
    ranks_of,
    ranks_text,
    shards_of,
)
from planner.domain.plan.shards import Shards

_CUTS = (None, ROWS, COLUMNS)
_APART = -1
#: Numbers of a shard that say where it is.
_PLACE = ("rank", "row_offset", "num_rows", "column_offset", "num_columns")
#: Numbers of a shard are below the first, so that sums of two fit into 64 bits; numbers of a group below the second, so
#: that a million sizes do.
_MOST_OF_SHARD, _MOST_OF_GROUP = 2**62, 2**42


def compact_document(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compact form of a plan document; one in compact form is returned as it is.

    Raises
    ------
    KeyError, TypeError, AttributeError
        A part that is made compact has another shape.
    """
    if is_compact(plan):
        return dict(plan)
    document = {**plan, FORM: COMPACT}
    document[TABLES] = [{**table, SHARDS: _groups_of_listed(table[SHARDS])} for table in plan[TABLES]]
    if RANKS in plan:
        document[RANKS] = columns_of(plan[RANKS], "rank")
    if plan.get(CHECKPOINT) is not None:
        checkpoint = plan[CHECKPOINT]
        document[CHECKPOINT] = {
            **checkpoint,
            **{key: columns_of(checkpoint[key], name) for key, name in CHECKPOINT_COLUMNS.items() if key in checkpoint},
        }
    return document


def bare_tables(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of a plan in compact form, without what is derived: equal plans have equal ones.

    Neither the form of the plan nor the way in which its author grouped the shards makes a difference. Raises like
    :func:`compact_document`, and ``ValueError`` where ranks cannot be read.
    """
    return [{**table, SHARDS: _bare_groups(table[SHARDS], is_compact(plan))} for table in plan[TABLES]]


def groups_of(shards: Shards, sizes: Ints) -> list[Any]:
    """Return the groups of the shards of a table; ``sizes`` are the bytes of each, of shape (num_shards,)."""
    labels = Tier.labels()
    return [
        {
            RANKS: ranks_text(shards.rank[start:end].tolist()),
            CUT: cut,
            "row_offset": int(shards.row_offset[start]),
            "num_rows": int(shards.num_rows[start]),
            "column_offset": int(shards.column_offset[start]),
            "num_columns": int(shards.num_columns[start]),
            "tier": labels[shards.tier[start]],
            "bytes": int(sizes[start]),
        }
        for start, end, cut in _runs(shards.columns[:5], shards.tier, sizes)
    ]


def grouped_shards(groups: Sequence[Mapping[str, Any]], tiers: Sequence[Tier]) -> Shards:
    """Return the shards of a table, which is in groups; ``tiers`` are those of the groups.

    Raises ``ValueError`` where ranks cannot be read.
    """
    return Shards.joined(_shards_of_group(group, tier) for group, tier in zip(groups, tiers, strict=True))


def columns_of(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    """Return columns in the place of rows; rows that have not the same fields, or lists in them, stay as they are.

    ``name`` is the field that numbers the rows, and has a list in any case.
    """
    if not rows or _has_list(rows) or any(name not in row or row.keys() != rows[0].keys() for row in rows):
        return list(rows)
    return {key: [row[key] for row in rows] if key == name else _column([row[key] for row in rows]) for key in rows[0]}


def _column(values: list[Any]) -> Any:
    """Return one value for all that are equal, an object of columns for objects with equal fields, else the list."""
    if all(isinstance(value, Mapping) for value in values):
        if any(value.keys() != values[0].keys() for value in values):
            return values
        return {key: _column([value[key] for value in values]) for key in values[0]}
    # 0, 0.0 and -0.0 are equal, and other texts.
    return values if len(set(map(repr, values))) > 1 else values[0]


def _has_list(value: object) -> bool:
    """Whether a list is in the fields of rows."""
    if isinstance(value, Mapping):
        return any(isinstance(one, list) or _has_list(one) for one in value.values())
    return isinstance(value, Sequence) and not isinstance(value, str) and any(map(_has_list, value))


def _bare_groups(listed: Sequence[Mapping[str, Any]], is_in_groups: bool) -> list[dict[str, Any]]:
    """Return the groups of shards without what is derived, however the shards were grouped before."""
    bare = [{key: value for key, value in one.items() if key not in DERIVED_SHARD_KEYS} for one in listed]
    if not is_in_groups:
        return _groups_of_listed(bare)
    if not _are_usual(bare, _PLACE[1:], _MOST_OF_GROUP):
        return _groups_of_listed(shards_of(bare))
    return [_normal_group(bare[0])] if len(bare) == 1 else _groups_of_groups(bare)


def _normal_group(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group as :func:`_runs` would have it: without arrays, for the many tables that have one group."""
    ranks, cut = ranks_of(group[RANKS]), group[CUT]
    is_cut = cut is not None and len(ranks) > 1 and group[STEPS[cut][1]] != 0
    return {**group, RANKS: ranks_text(ranks), CUT: cut if is_cut else None}


def _groups_of_groups(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return groups that are as long as they can be; no shard becomes an object."""
    places = [_place_of_group(group) for group in groups]
    place, sizes = np.concatenate(places, axis=1), [one.shape[1] for one in places]
    kind, group_of = np.repeat(_kinds(groups, (RANKS, CUT)), sizes), np.repeat(np.arange(len(groups)), sizes)
    return [
        {
            **groups[group_of[start]],
            **dict(zip(_PLACE[1:], place[1:, start].tolist(), strict=True)),
            RANKS: ranks_text(place[0, start:end].tolist()),
            CUT: cut,
        }
        for start, end, cut in _runs(place, kind)
    ]


def _groups_of_listed(listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups of shards as a document lists them.

    If shards differ in their fields, or a place is no integer, each shard is a group of its own.
    """
    runs: Iterator[tuple[int, int, str | None]] = ((number, number + 1, None) for number in range(len(listed)))
    if _are_usual(listed, _PLACE, _MOST_OF_SHARD):
        place = np.array([[shard[key] for key in _PLACE] for shard in listed], dtype=np.int64).reshape(-1, len(_PLACE))
        runs = _runs(place.T, _kinds(listed, ("rank",)))
    return [
        {
            RANKS: ranks_text([shard["rank"] for shard in listed[start:end]]),
            CUT: cut,
            **{key: value for key, value in listed[start].items() if key != "rank"},
        }
        for start, end, cut in runs
    ]


def _are_usual(listed: Sequence[Mapping[str, Any]], numbers: Sequence[str], limit: int) -> bool:
    """Whether all have the same fields, and ``numbers`` are integers of which none reaches ``limit``."""
    if any(one.keys() != listed[0].keys() for one in listed):
        return False
    return all(type(one[key]) is int and abs(one[key]) < limit for one in listed for key in numbers)


def _kinds(listed: Sequence[Mapping[str, Any]], without: Sequence[str]) -> Ints:
    """Return a number for each, of shape (len(listed),): equal where all fields but places and ``without`` are."""
    others = sorted(listed[0].keys() - {*_PLACE, *without}) if listed else []
    kinds = dict[str, int]()
    return np.array(
        [kinds.setdefault(repr([one[key] for key in others]), len(kinds)) for one in listed], dtype=np.int64
    )


def _runs(place: Ints, *others: Ints) -> Iterator[tuple[int, int, str | None]]:
    """Yield begin, end and cut of the groups of shards, each as long as it can be.

    ``place`` has the numbers of ``_PLACE``, of shape (5, num_shards); shards of a group have equal ``others``.
    """
    links = _links(place, others)
    ends = [*(np.flatnonzero(np.diff(links)) + 1).tolist(), *([len(links)] if len(links) else [])]
    start = first = 0  # the first shard that is in no group yet; the first link of a row of equal ones
    for end in ends:
        cut, begin = links[first], max(start, first)
        if cut == _APART:
            yield from ((number, number + 1, None) for number in range(begin, end))
            start = end
        elif begin < end:
            yield begin, end + 1, _CUTS[cut]
            start = end + 1
        first = end
    yield from ((number, number + 1, None) for number in range(start, place.shape[1]))


def _links(place: Ints, others: Sequence[Ints]) -> Ints:
    """Return how each shard but the first follows the one before, as numbers of ``_CUTS`` or ``_APART``."""
    if place.shape[1] < 2:  # as most tables of a large plan
        return np.zeros(0, dtype=np.int64)
    _, row_offset, num_rows, column_offset, num_columns = place
    is_alike: Bools = np.all([one[1:] == one[:-1] for one in (num_rows, num_columns, *others)], axis=0)
    row_step, column_step = np.diff(row_offset), np.diff(column_offset)
    follows = [
        (row_step == 0) & (column_step == 0),
        (row_step == num_rows[:-1]) & (column_step == 0),
        (row_step == 0) & (column_step == num_columns[:-1]),
    ]
    return np.select([is_alike & one for one in follows], range(len(_CUTS)), default=_APART)


def _shards_of_group(group: Mapping[str, Any], tier: Tier) -> Shards:
    place = _place_of_group(group)
    return Shards(np.concatenate([place, np.full((1, place.shape[1]), tier, dtype=np.int64)]))


def _place_of_group(group: Mapping[str, Any]) -> Ints:
    """Return the numbers of ``_PLACE`` of every shard of a group, of shape (5, num_shards)."""
    ranks = np.concatenate([np.arange(one.start, one.stop) for one in rank_ranges(group[RANKS])])
    place = np.empty((len(_PLACE), len(ranks)), dtype=np.int64)
    place[0] = ranks
    place[1:] = np.array([[group[name]] for name in _PLACE[1:]], dtype=np.int64)
    if group[CUT] is not None:
        offset, size = STEPS[group[CUT]]
        place[_PLACE.index(offset)] += np.arange(len(ranks)) * group[size]
    return place
