r"""Choices of tables: a few that cover every legal cut from below.

A family can be cut in more ways than anyone can list. All its cuts into k pieces are covered by one
choice, and its numbers are what no such cut goes below:

- *in all*: for any slope :math:`\beta`, a piece of w columns costs at least :math:`\alpha + \beta w` with
  :math:`\alpha = \min_w (c(w) - \beta w)`, so that k pieces of D columns together cost at least
  :math:`k \alpha + \beta D`. The slope is that of the costs around D / k columns, where it is tight;
- *largest piece*: one of k pieces has at least ceil(D / k) columns, and costs at least the least that any
  piece of that width or more costs.

Neighbouring numbers of pieces share one choice, with the least of their numbers, so that a wide
table does not have a hundred choices.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.memo import memoized_on_problem
from planner.solver.problem import SolverProblem

#: Numbers of pieces at which a new choice begins.
_PIECE_STEPS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024])

#: Shapes that are looked at together: their costs stay in the processor's cache.
_SHAPES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alike:
    """Families that have the same widths and numbers of pieces."""

    families: Ints  # (F',)
    shapes: Ints  # (F', widths)
    widths: Floats  # (widths,) columns, narrowest first
    columns: float  # of the table
    ranges: tuple[tuple[int, int], ...]  # numbers of pieces of each choice: first, and one past the last


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The choices of a problem, families in order and their numbers of pieces ascending; C in all."""

    family: Ints  # (C,)
    pieces: Ints  # (C,) fewest pieces
    _groups: tuple[_Alike, ...]
    _order: Ints  # of the choices as the groups have them

    def in_all(self, costs: Floats) -> Floats:
        """Return what all pieces of each choice come to at least, (C, N), for costs of shapes, (S, N)."""
        return self._joined(
            np.min([lines.least_in_all(k) for k in range(fewest, after)], axis=0)
            for one in self._groups
            for lines in (_Lines(_of(one, costs), one.widths, one.columns),)
            for fewest, after in one.ranges
        )

    def largest(self, costs: Floats) -> Floats:
        """Return what the largest piece of each choice costs at least, (C, N), for costs of shapes, (S, N)."""

        def parts() -> Iterator[Floats]:
            for one in self._groups:
                least_from = np.minimum.accumulate(_of(one, costs)[::-1])[::-1]  # (W, N, F'), at a width or more
                for _, after in one.ranges:
                    yield least_from[np.searchsorted(one.widths, np.ceil(one.columns / (after - 1)))]

        return self._joined(parts())

    def _joined(self, parts: Iterator[Floats]) -> Floats:
        """Join (N, F') numbers of groups and ranges, in the order of choices."""
        joined: Floats = np.concatenate([part.T for part in parts])[self._order]
        return joined


@memoized_on_problem
def choices_of(priced: SolverProblem) -> Choices:
    """Return the choices of a problem."""
    groups = tuple(_groups(priced))
    family = np.concatenate([one.families for one in groups for _ in one.ranges])
    pieces = np.concatenate([np.full(len(one.families), fewest) for one in groups for fewest, _ in one.ranges])
    order = np.lexsort((pieces, family))
    return Choices(family=family[order], pieces=pieces[order], _groups=groups, _order=order)


def _groups(priced: SolverProblem) -> Iterator[_Alike]:
    first, last = priced.shapes_of_family
    columns = priced.table_columns[priced.family_table]
    keys = np.stack(
        [columns, last - first, priced.shape_columns[first], priced.family_min_pieces, priced.family_max_pieces], axis=1
    )
    _, which = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.flatnonzero(np.diff(which.reshape(-1)[order])) + 1
    for families in np.split(order, ends):
        shapes = first[families][:, None] + np.arange(last[families[0]] - first[families[0]])
        widths = priced.shape_columns[shapes[0]].astype(np.float64)
        of_table = float(columns[families[0]])
        fewest, most = int(priced.family_min_pieces[families[0]]), int(priced.family_max_pieces[families[0]])
        fewest = max(fewest, int(np.ceil(of_table / widths[-1])))
        starts = sorted({fewest, *(int(k) for k in _PIECE_STEPS if fewest <= k <= most)})
        ranges = tuple(zip(starts, [*starts[1:], most + 1], strict=True))
        at_once = max(_SHAPES // shapes.shape[1], 1)
        for start in range(0, len(families), at_once):
            some = slice(start, start + at_once)
            yield _Alike(families=families[some], shapes=shapes[some], widths=widths, columns=of_table, ranges=ranges)


def _of(one: _Alike, costs: Floats) -> Floats:
    """Return costs of the families' shapes, (widths, N, F'): families last, for steps that run over many of them."""
    found: Floats = np.moveaxis(costs[one.shapes], 0, 2).copy()
    return found


class _Lines:
    """Lines below costs of families by columns, (W, N, F'), each through two widths; kept for other numbers."""

    def __init__(self, cost: Floats, widths: Floats, columns: float) -> None:
        self._cost, self._widths, self._columns = cost, widths, columns
        self._known: dict[tuple[int, int], tuple[Floats, Floats]] = {}

    def least_in_all(self, pieces: int) -> Floats:
        """Return what k pieces of all columns cost at least, shape (N, F')."""
        last = len(self._widths) - 1
        if not last:
            whole: Floats = pieces * self._cost[0]
            return whole
        share = self._columns / pieces
        at = int(np.clip(np.searchsorted(self._widths, share), 1, last))
        lines = [self._line(low, high) for low, high in {(at - 1, at), (at - 1, min(at + 1, last)), (0, last)}]
        best: Floats = np.max([pieces * least + in_all for least, in_all in lines], axis=0)
        return best

    def _line(self, low: int, high: int) -> tuple[Floats, Floats]:
        """Return where the highest line with the slope between two widths begins, and what it adds for all columns."""
        if (low, high) not in self._known:
            slope = (self._cost[high] - self._cost[low]) / (self._widths[high] - self._widths[low])  # (N, F')
            least = np.min(self._cost - slope * self._widths[:, None, None], axis=0)
            self._known[low, high] = least, slope * self._columns
        return self._known[low, high]
