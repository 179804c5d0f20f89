r"""The data of the relaxation: per table a few choices that cover every legal cut from below.

A family can be cut in more ways than anyone can list. All its cuts into k pieces are covered by one
choice, and its numbers are what no such cut goes below, phase by phase and tier by tier:

- *in all*: for any slope :math:`\beta`, a piece of w columns costs at least :math:`\alpha + \beta w` with
  :math:`\alpha = \min_w (c(w) - \beta w)`, so that k pieces of D columns together cost at least
  :math:`k \alpha + \beta D`. The slope is that of the costs around D / k columns, where it is tight;
- *largest piece*: one of k pieces has at least ceil(D / k) columns, and costs at least the least that any
  piece of that width or more costs.

Neighbouring numbers of pieces share one choice, with the least of their numbers, so that a wide
table does not have a hundred choices.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.memo import memoized_on_problem
from planner.solver.problem import Objective, Scope, SolverProblem

#: Numbers of pieces at which a new choice begins.
_PIECE_STEPS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024])

#: Shapes that are looked at together: their costs stay in the processor's cache.
_SHAPES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Choices of tables as numbers; Q phases, one for max_rank_time.

    Seconds are those of a rank of average speed: what a cluster does in one second of every
    rank is ``rank_seconds[q]`` seconds of work at relative speed 1.
    """

    choice_table: Ints  # (C,) owner of each choice, contiguous
    num_tables: int
    total: Floats  # (C, Q) seconds over all ranks, over the ranks' speeds
    big: Floats  # (C, Q) of the largest piece that is not on every rank
    world: Floats  # (C, Q) on every rank
    total_bytes: Floats  # (C, M)
    cluster_bytes: Floats  # (M,)
    weight: Floats  # (Q,)
    window: Floats  # (Q,) hidden; negative where every plan pays starts
    #: (C,) fewest pieces of the choice: to say which cut a bound stands on
    family: Ints
    pieces: Ints


@memoized_on_problem
def relaxations(priced: SolverProblem) -> list[Relaxation]:
    """Return one relaxation per way in which ranks of unequal speed can be added up (one where they are equal)."""
    return [_relaxation(priced, average) for average in _average_speeds(priced)]


def _average_speeds(priced: SolverProblem) -> list[Floats]:
    """Weigh ranks so that their sum is a bound: what the slowest rank takes of all work at relative speed 1, (P,) each.

    step_time: z[p] >= s[r, p] w[r, p] for every rank gives z[p] >= sum_r w[r, p] / sum_r 1 / s[r, p].
    max_rank_time: z >= sum_p s[r, p] w[r, p]; with weights a[r] >= 0 that add up to 1, z >=
    sum_p (min_r a[r] s[r, p]) sum_r w[r, p]. Equal weights suit equal ranks; weights of 1 / s suit
    loads that follow the ranks' speeds.
    """
    slow = priced.rank_slowdown
    if priced.objective is Objective.STEP_TIME:
        return [1.0 / np.sum(1.0 / slow, axis=0)]
    return [np.min(a[:, None] * slow, axis=0) for a in rank_weights(priced)]


def rank_weights(priced: SolverProblem) -> list[Floats]:
    """Return the weights of ranks of each relaxation of max_rank_time, (R,) each, which add up to 1."""
    slow = priced.rank_slowdown
    ways = [np.ones(priced.num_ranks)]
    if np.any(slow != slow[0]):
        ways.append(1.0 / np.max(slow, axis=1))
    return [way / np.sum(way) for way in ways]


def _relaxation(priced: SolverProblem, average: Floats) -> Relaxation:
    family, pieces, total, big, total_bytes = _choices(priced)
    world = np.where((priced.family_scope[family] == Scope.WORLD)[:, None], total, 0.0)
    big = np.where((priced.family_scope[family] == Scope.WORLD)[:, None], 0.0, big)
    ranks = np.array([1, priced.ranks_per_host, priced.num_ranks])[priced.family_scope[family]][:, None]
    least = np.min(priced.rank_slowdown, axis=0)  # a piece takes at least so many times its work
    total, big, world = total * ranks * average, big * least, world * least
    weight = priced.phase_weight
    if priced.objective is Objective.MAX_RANK_TIME:
        total, big, world = ((each @ weight)[:, None] for each in (total, big, world))
        weight = np.ones(1)
    return Relaxation(
        choice_table=priced.family_table[family],
        num_tables=priced.num_tables,
        total=total,
        big=big,
        world=world,
        total_bytes=total_bytes,
        cluster_bytes=np.sum(priced.capacity_bytes, axis=0),
        weight=weight,
        window=priced.window_seconds,
        family=family,
        pieces=pieces,
    )


def _choices(priced: SolverProblem) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Return family, fewest pieces, seconds in all per rank touched, largest piece and bytes of every choice.

    For max_rank_time the largest piece is bounded phase by phase, which is a little below its sum.
    """
    parts = []
    for families, shapes in _alike(priced):
        at_once = max(_SHAPES // shapes.shape[1], 1)
        for start in range(0, len(families), at_once):
            some = slice(start, start + at_once)
            parts.append(_choices_of_alike(priced, families[some], shapes[some]))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    family, pieces, total, big, total_bytes = (column[order] for column in joined)
    return family, pieces, total, big, total_bytes


def _alike(priced: SolverProblem) -> list[tuple[Ints, Ints]]:
    """Group families with the same widths and numbers of pieces: (families, (families, widths) shapes)."""
    first, last = priced.shapes_of_family
    columns = priced.table_columns[priced.family_table]
    keys = np.stack(
        [columns, last - first, priced.shape_columns[first], priced.family_min_pieces, priced.family_max_pieces], axis=1
    )
    _, which = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.flatnonzero(np.diff(which.reshape(-1)[order])) + 1
    return [
        (families, first[families][:, None] + np.arange(last[families[0]] - first[families[0]]))
        for families in np.split(order, ends)
    ]


def _choices_of_alike(priced: SolverProblem, families: Ints, shapes: Ints) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Return the choices of families that have the same widths, flattened."""
    one = families[0]
    widths = priced.shape_columns[shapes[0]].astype(np.float64)
    columns = float(priced.table_columns[priced.family_table[one]])
    fewest, most = int(priced.family_min_pieces[one]), int(priced.family_max_pieces[one])
    fewest = max(fewest, int(np.ceil(columns / widths[-1])))
    # Families come last, so that every step below runs over many of them.
    seconds, sizes = (
        np.moveaxis(cost[shapes], 0, 2).copy() for cost in (priced.shape_seconds, priced.shape_total_bytes)
    )
    least_from = np.minimum.accumulate(seconds[::-1])[::-1]  # (W, P, F'), least seconds at a width or more
    starts = [int(k) for k in _PIECE_STEPS if fewest <= k <= most]
    starts = sorted({fewest, *starts})
    rows = []
    for start, after in zip(starts, [*starts[1:], most + 1], strict=True):
        total, total_bytes = (
            np.min([_least_in_all(cost, widths, columns, k) for k in range(start, after)], axis=0).T
            for cost in (seconds, sizes)
        )
        widest = np.searchsorted(widths, np.ceil(columns / (after - 1)))
        rows.append((families, np.full(len(families), start), total, least_from[widest].T, total_bytes))
    family, pieces, total, big, total_bytes = (np.concatenate(column) for column in zip(*rows, strict=True))
    return family, pieces, np.maximum(total, 0.0), big, np.maximum(total_bytes, 0.0)


def _least_in_all(cost: Floats, widths: Floats, columns: float, pieces: int) -> Floats:
    """Return what k pieces of all columns cost at least, shape (P or M, F'); ``cost`` is (W, P or M, F')."""
    if len(widths) == 1:
        whole: Floats = pieces * cost[0]
        return whole
    share = columns / pieces
    at = int(np.clip(np.searchsorted(widths, share), 1, len(widths) - 1))
    bounds = []
    for low, high in {(at - 1, at), (max(at - 1, 0), min(at + 1, len(widths) - 1)), (0, len(widths) - 1)}:
        slope = (cost[high] - cost[low]) / (widths[high] - widths[low])  # (P, F')
        least = np.min(cost - slope * widths[:, None, None], axis=0)
        bounds.append(pieces * least + slope * columns)
    best: Floats = np.max(bounds, axis=0)
    return best
