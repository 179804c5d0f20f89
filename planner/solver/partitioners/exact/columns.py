"""The choice among listed options as integer columns, and the way from an assignment to their values and back.

Equal pieces of a table are counted, not distinguished: a column says *how many* pieces of a shape
are on a site, so that an option of a hundred equal pieces has as many columns as one of two, and the
options of a family share them. Pinned tables have no columns: what they take is known.

Columns, all integer, in this order::

    x[o]      1 where option o is chosen
    w[s, i]   number of pieces of shape s on site i, a rank or a host
    h[o, k]   1 where option o is chosen and its pieces, which must share a host, are on host k
    g[G, r]   1 where same-rank group G is on rank r
    a[t, r]   1 where table t, which must stay apart from others, may use rank r

Options that go everywhere have no w: x says all.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.evaluate import touched_ranks
from planner.solver.partitioners.exact.listed_cuts import options_of
from planner.solver.problem import Assignment, Scope, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """C columns, and what each adds to ranks."""

    option: Ints  # (X,) of x
    shape: Ints  # (W,) of w, sorted
    site: Ints  # (W,) of w, sorted within a shape
    same_host: Ints  # options that have h
    apart: Ints  # tables that have a
    start_h: int
    start_g: int
    start_a: int
    upper: Ints  # (C,)
    table: Ints  # (C,) whose pieces a column stands for; -1 where it adds to no rank
    # A column adds to ranks first_rank <= r < end_rank; to none for h, g, a and most x.
    first_rank: Ints  # (C,)
    end_rank: Ints  # (C,)
    seconds: Floats  # (C, P) at relative speed 1
    bytes: Floats  # (C, M)
    busy_seconds: Floats  # (C, K) of slower tiers; K is 0 where none is read

    @property
    def num(self) -> int:
        """C."""
        return int(self.upper.shape[0])


def num_placements(priced: SolverProblem) -> int:
    """Number of w columns, those of sites that do not fit included."""
    shapes = np.unique(priced.unit_shape[_is_free(priced)[priced.unit_option]])
    return int(np.array([priced.num_ranks, priced.num_hosts, 0])[priced.shape_scope[shapes]].sum())


def _is_free(priced: SolverProblem) -> Bools:
    """Whether an option may be chosen: those of pinned tables may not, (O,)."""
    return ~priced.table_is_pinned[priced.option_table]


def make_columns(priced: SolverProblem) -> Columns:
    """Number the columns of a problem."""
    free = _is_free(priced)
    option = np.flatnonzero(free)
    shape, site, most = _places(priced)
    same_host = np.flatnonzero(free & priced.family_same_host[priced.option_family] & (priced.num_hosts > 1))
    apart = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *priced.apart]))
    start_h = len(option) + len(shape)
    start_g = start_h + len(same_host) * priced.num_hosts
    start_a = start_g + len(priced.same_rank) * priced.num_ranks
    num = start_a + len(apart) * priced.num_ranks
    x, w = slice(0, len(option)), slice(len(option), start_h)
    upper, table = np.ones(num, dtype=np.int64), np.full(num, -1, dtype=np.int64)
    first_rank, end_rank = np.zeros(num, dtype=np.int64), np.zeros(num, dtype=np.int64)
    seconds, sizes = np.zeros((num, priced.num_phases)), np.zeros((num, priced.num_tiers))
    shape_busy = priced.shape_busy_seconds
    shape_busy = np.zeros((priced.num_shapes, 0)) if shape_busy is None else shape_busy
    busy = np.zeros((num, shape_busy.shape[1]))
    width = priced.shape_ranks[shape]
    upper[w], table[w], first_rank[w], end_rank[w] = most, priced.shape_table[shape], site * width, (site + 1) * width
    seconds[w], sizes[w], busy[w] = priced.shape_seconds[shape], priced.shape_bytes[shape], shape_busy[shape]
    world = np.flatnonzero((priced.unit_scope == Scope.WORLD) & free[priced.unit_option])
    column = np.searchsorted(option, priced.unit_option[world])
    np.add.at(seconds, column, priced.shape_seconds[priced.unit_shape[world]])
    np.add.at(sizes, column, priced.shape_bytes[priced.unit_shape[world]])
    np.add.at(busy, column, shape_busy[priced.unit_shape[world]])
    table[column] = priced.option_table[priced.unit_option[world]]
    end_rank[column] = priced.num_ranks
    upper[x] = (table[x] < 0) | priced.table_rank_allowed[priced.option_table[option]].all(axis=1)
    return Columns(
        option=option,
        shape=shape,
        site=site,
        same_host=same_host,
        apart=apart,
        start_h=start_h,
        start_g=start_g,
        start_a=start_a,
        upper=upper,
        table=table,
        first_rank=first_rank,
        end_rank=end_rank,
        seconds=seconds,
        bytes=sizes,
        busy_seconds=busy,
    )


def _places(priced: SolverProblem) -> tuple[Ints, Ints, Ints]:
    """Shape, site and largest number of pieces of every placement that fits by itself."""
    shape, _, number = pieces_of_options(priced)
    shapes, first = np.unique(shape, return_index=True)
    if len(shapes) == 0:
        return shapes, shapes, shapes
    most = np.maximum.reduceat(number, first)
    fits = priced.table_rank_allowed[priced.shape_table[shapes]] & np.all(
        priced.shape_bytes[shapes, None, :] <= priced.capacity_bytes, axis=2
    )
    hosts = fits.reshape(len(shapes), priced.num_hosts, -1).all(axis=2)
    on_rank = priced.shape_scope[shapes] == Scope.RANK
    fits[~on_rank] = False
    fits[~on_rank, : priced.num_hosts] = hosts[~on_rank]
    index, site = np.nonzero(fits)
    return shapes[index], site, most[index]


def pieces_of_options(priced: SolverProblem) -> tuple[Ints, Ints, Ints]:
    """Shape, option and number of pieces, sorted by shape, of options that may be chosen; none that go everywhere."""
    units = np.flatnonzero(_is_free(priced)[priced.unit_option] & (priced.unit_scope != Scope.WORLD))
    pairs = np.stack([priced.unit_shape[units], priced.unit_option[units]])
    (shape, option), number = np.unique(pairs, axis=1, return_counts=True)
    return shape, option, number


def values_of(priced: SolverProblem, columns: Columns, assignment: Assignment) -> Ints:
    """Return the columns of a valid assignment of listed cuts, shape (C,)."""
    values = np.zeros(columns.num, dtype=np.int64)
    chosen = options_of(priced, assignment)
    chosen = chosen[~priced.table_is_pinned]
    values[np.searchsorted(columns.option, chosen)] = 1
    piece_scope = priced.shape_scope[assignment.piece_shape]
    placed = (piece_scope != Scope.WORLD) & ~priced.table_is_pinned[priced.shape_table[assignment.piece_shape]]
    shape, site = assignment.piece_shape[placed], assignment.piece_site[placed]
    keys = columns.shape * priced.num_ranks + columns.site
    np.add.at(values, len(columns.option) + np.searchsorted(keys, shape * priced.num_ranks + site), 1)
    touched = touched_ranks(priced, assignment)
    for index, option in enumerate(columns.same_host):
        if np.any(chosen == option):
            host = priced.host_of_rank[np.argmax(touched[priced.option_table[option]])]
            values[columns.start_h + index * priced.num_hosts + host] = 1
    groups = [touched[group].any(axis=0) for group in priced.same_rank]
    values[columns.start_g :] = np.concatenate([np.zeros(0, dtype=np.int64), *groups, *touched[columns.apart]])
    return values


def assignment_of(priced: SolverProblem, columns: Columns, values: Ints) -> Assignment:
    """Return the assignment of a solution; equal pieces of a table take their sites in order."""
    chosen = np.zeros(priced.num_options, dtype=np.bool_)
    chosen[columns.option] = values[: len(columns.option)] > 0
    shape = priced.unit_shape[chosen[priced.unit_option]]
    site = np.zeros_like(shape)
    placed = np.flatnonzero(priced.shape_scope[shape] != Scope.WORLD)
    placed = placed[np.argsort(shape[placed], kind="stable")]
    number = values[len(columns.option) : columns.start_h]
    site[placed] = np.repeat(columns.site, number)
    shape = np.concatenate([shape, priced.pinned_shape])
    site = np.concatenate([site, priced.pinned_site])
    order = np.argsort(priced.shape_table[shape], kind="stable")
    return Assignment(piece_shape=shape[order], piece_site=site[order])
