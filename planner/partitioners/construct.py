"""One construction: an option per table, then items heaviest first where they hurt least."""

import numpy as np
from numpy.typing import NDArray

from planner.partitioners.builder import Builder, SearchView
from planner.priced import Assignment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SMALLEST_TARGET = 1e-6  # of the largest phase: a phase that is almost nothing still has a scale


def even_share(view: SearchView) -> float:
    """Seconds per rank if every table took its cheapest option and loads were spread evenly."""
    cheapest = np.full(view.priced.num_tables, np.inf)
    np.minimum.at(cheapest, view.priced.option_table, view.total.sum(axis=1))
    return max(float(cheapest.sum()) / view.priced.num_ranks, 1e-12)


def choose_options(view: SearchView, cap_seconds: float, price_seconds: float) -> Ints:
    """Return the option of least priced cost per table, shape (T,).

    ``cap_seconds`` is the largest piece that is not punished: an option over it costs as if
    all of it were as slow as its largest piece. ``price_seconds`` is what the whole
    cluster's memory would cost.
    """
    cluster = np.maximum(view.priced.capacity_bytes.sum(axis=0), 1.0)
    cost = view.total.sum(axis=1) / view.priced.num_ranks + price_seconds * (view.total_bytes / cluster).sum(axis=1)
    over = np.maximum(view.big / cap_seconds, 1.0)
    cost = np.where(over > 1.0, cost + view.big * over, cost)
    chosen = np.empty(view.priced.num_tables, dtype=np.int64)
    for table in range(view.priced.num_tables):
        first, last = view.first_option[table], view.last_option[table]
        chosen[table] = first + int(np.argmin(cost[first:last]))
    return chosen


def construct(view: SearchView, options: Ints) -> Assignment | None:
    """Place every table with its option, heaviest first; ``None`` if an item fits nowhere.

    A table whose option does not fit any more takes its next cheapest option that does.
    """
    builder = Builder(view, _target(view, options))
    for tables in _items(view, options):
        if not builder.place(tables, [int(options[t]) for t in tables]) and not _place_otherwise(view, builder, tables):
            return None
    return builder.assignment()


def scale_target(seconds: Floats) -> Floats:
    """Return a target per phase that is nowhere zero."""
    scaled: Floats = np.maximum(seconds, max(_SMALLEST_TARGET * float(seconds.max()), 1e-30))
    return scaled


def _target(view: SearchView, options: Ints) -> Floats:
    """Per phase, the larger of the average load and the largest piece of the chosen options."""
    average = view.total[options].sum(axis=0) / view.priced.num_ranks
    return scale_target(np.maximum(average, view.largest_seconds[options].max(axis=0)))


def _items(view: SearchView, options: Ints) -> list[list[int]]:
    """Tables in the order of placement: those on most ranks first, then heaviest piece first.

    A piece weighs the larger of its share of seconds and its share of a rank's bytes. Tables
    of a same-rank group are one item.
    """
    priced = view.priced
    items: list[list[int]] = [[int(t)] for t in np.flatnonzero(view.group_of_table < 0)]
    items.extend([int(t) for t in group] for group in priced.same_rank)
    capacity = np.maximum(priced.capacity_bytes.max(axis=0), 1.0)
    by_bytes = (view.largest_bytes[options] / capacity).max(axis=1)
    heavy = np.maximum(view.big[options] / even_share(view), by_bytes)
    touched = view.touched[view.first_unit[options]]
    return sorted(items, key=lambda item: (-int(touched[item].max()), -float(heavy[item].sum()), item[0]))


def _place_otherwise(view: SearchView, builder: Builder, tables: list[int]) -> bool:
    if len(tables) > 1:
        return False  # a same-rank group has one way to be whole
    first, last = int(view.first_option[tables[0]]), int(view.last_option[tables[0]])
    order = sorted(range(first, last), key=lambda o: (float(view.total[o].sum()), o))
    return any(builder.place(tables, [option]) for option in order)
