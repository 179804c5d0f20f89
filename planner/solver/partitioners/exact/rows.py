"""The rules of a valid plan as linear rows over the columns of :mod:`planner.solver.partitioners.exact.columns`.

With n[o, s] the number of pieces of shape s that option o has::

    (1) sum_{o of t} x[o] = 1                              every table has one option
    (2) sum_i w[s, i] = sum_o n[o, s] x[o]                 its pieces are placed, each once
    (3) sum_k h[o, k] = x[o]                               pieces that must share a host
    (4) sum_{i on k} w[s, i] = sum_o n[o, s] h[o, k]       are on one
    (5) sum_r g[G, r] = 1;  w[s, i] <= upper g[G, r]       a same-rank group has one rank r, no piece elsewhere
    (6) sum_{t of group} a[t, r] <= 1;  w[s, i] <= upper a[t, r]     apart groups share no rank
    (7) w[s, j] <= upper sum_{t' up to t} w[s', i]         s of t; i comes before j in a class of equal sites

In (5) and (6) r is every rank that pieces on site i touch; x of options that go everywhere
stands for w. Rows (7) keep at least one of all plans that differ by the names of equal ranks and hosts only
(:mod:`planner.solver.partitioners.exact.symmetry`); they are written for the tables that come first.
Loads and memory are left to the solvers, which round differently.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.solver.evaluate import touched_ranks
from planner.solver.partitioners.exact.columns import Columns, pieces_of_options
from planner.solver.partitioners.exact.symmetry import Symmetry
from planner.solver.problem import Assignment, SolverProblem

#: Tables for which rows (7) are written. More of them proved no more instances, and made plans harder to find.
ORDERED_TABLES = 2


class Row(NamedTuple):
    """``sum of coefficients x columns``, equal to ``value`` or at most as much."""

    columns: Ints
    coefficients: Ints
    value: int
    is_equation: bool


def _equal(columns: Ints, coefficients: Ints, value: int) -> Row:
    return Row(columns, coefficients, value, True)


def _at_most(columns: Ints, coefficients: Ints, value: int) -> Row:
    return Row(columns, coefficients, value, False)


def _sum_is(columns: Ints, value: int) -> Row:
    return _equal(columns, np.ones_like(columns), value)


def make_rows(priced: SolverProblem, columns: Columns, symmetry: Symmetry) -> Iterator[Row]:
    """Yield rows (1) to (7)."""
    pins = Assignment(piece_shape=priced.pinned_shape.copy(), piece_site=priced.pinned_site.copy())
    pinned = touched_ranks(priced, pins)
    if np.any(pinned & ~priced.table_rank_allowed):
        nothing = np.zeros(0, dtype=np.int64)
        yield _at_most(nothing, nothing, -1)  # a pin that is not allowed leaves no plan
    yield from _choice_rows(priced, columns)
    yield from _group_rows(priced, columns, pinned)
    yield from _order_rows(priced, columns, symmetry)


def _choice_rows(priced: SolverProblem, columns: Columns) -> Iterator[Row]:
    """(1) to (4)."""
    owner = priced.option_table[columns.option]
    for table in np.flatnonzero(~priced.table_is_pinned):  # (1)
        yield _sum_is(np.arange(np.searchsorted(owner, table), np.searchsorted(owner, table, side="right")), 1)
    start_of_h = {
        int(option): columns.start_h + index * priced.num_hosts for index, option in enumerate(columns.same_host)
    }
    for chosen, h in start_of_h.items():  # (3)
        hosts = np.arange(h, h + priced.num_hosts)
        yield _equal(np.append(hosts, np.searchsorted(columns.option, chosen)), np.append(np.ones_like(hosts), -1), 0)
    shape, option, number = pieces_of_options(priced)
    for s in np.unique(shape):
        low, high = np.searchsorted(shape, [s, s + 1])
        options, pieces = option[low:high], number[low:high]
        places = np.arange(*np.searchsorted(columns.shape, [s, s + 1]))
        w = places + len(columns.option)
        ones = np.ones_like(w)
        x = np.searchsorted(columns.option, options)
        yield _equal(np.concatenate([w, x]), np.concatenate([ones, -pieces]), 0)  # (2)
        if int(options[0]) in start_of_h:  # (4)
            first_h = np.array([start_of_h[int(o)] for o in options])
            host = priced.host_of_rank[columns.site[places]]
            for k in range(priced.num_hosts):
                here = w[host == k]
                yield _equal(np.concatenate([here, first_h + k]), np.append(np.ones_like(here), -pieces), 0)


def _group_rows(priced: SolverProblem, columns: Columns, pinned: Bools) -> Iterator[Row]:
    """(5) and (6)."""
    for index, group in enumerate(priced.same_rank):  # (5)
        g = columns.start_g + np.arange(priced.num_ranks) + index * priced.num_ranks
        yield _sum_is(g, 1)
        yield from _only_where(columns, group, g)
        for rank in np.flatnonzero(pinned[group].any(axis=0)):
            yield _sum_is(g[rank : rank + 1], 1)
    a = columns.start_a + np.arange(len(columns.apart) * priced.num_ranks).reshape(-1, priced.num_ranks)
    for table, mine in zip(columns.apart, a, strict=True):  # (6)
        yield from _only_where(columns, np.array([table]), mine)
        for rank in np.flatnonzero(pinned[table]):
            yield _sum_is(mine[rank : rank + 1], 1)
    for group in priced.apart:
        for at_rank in a[np.searchsorted(columns.apart, group)].T:
            yield _at_most(at_rank, np.ones_like(at_rank), 1)


def _only_where(columns: Columns, tables: Ints, mark: Ints) -> Iterator[Row]:
    """Pieces of these tables touch only ranks that are marked; ``mark`` has a column per rank."""
    for column in np.flatnonzero(np.isin(columns.table, tables)):
        for rank in range(columns.first_rank[column], columns.end_rank[column]):
            yield _at_most(np.array([column, mark[rank]]), np.array([1, -columns.upper[column]]), 0)


def _order_rows(priced: SolverProblem, columns: Columns, symmetry: Symmetry) -> Iterator[Row]:
    """(7)."""
    w = np.arange(len(columns.option), columns.start_h)
    place = symmetry.table_place[columns.table[w]]
    first_places = np.unique(place)[:ORDERED_TABLES]
    w, place = w[np.isin(place, first_places)], place[np.isin(place, first_places)]
    for classes, width in ((symmetry.ranks, 1), (symmetry.hosts, priced.ranks_per_host)):
        for members in classes:
            inside = [
                (columns.first_rank[w] >= site * width) & (columns.end_rank[w] <= (site + 1) * width)
                for site in members
            ]
            for before, here in itertools.pairwise(inside):
                for column, at in zip(w[here], place[here], strict=True):
                    earlier = w[before & (place <= at)]
                    most = np.full(len(earlier), -columns.upper[column])
                    yield _at_most(np.append(column, earlier), np.append(1, most), 0)
