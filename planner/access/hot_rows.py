"""Tables split by heat: the hottest rows in the device's memory, the others in the host's.

The rows of such a table are renumbered by heat, hottest first (RecShard's remap, arXiv 2201.10095), so that both parts
are ranges of rows. Here is what share of a step's lookups, and of the distinct rows among them, the hot part serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.access.row_classes import RowClasses, row_classes
from planner.domain.problem.access import AccessStatistics
from planner.solver.segments import by_owner

#: Shares of the lookups that hot parts serve, where the user names no shares of the rows.
HOT_LOOKUP_SHARES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)


@dataclass(frozen=True, slots=True, kw_only=True)
class HotRowCurve:
    """One table, by the first share of its rows in some order; every array of shape (points,), from 0 to 1."""

    rows: Floats  # share of the rows
    lookups: Floats  # share of the lookups that they serve
    distinct: Floats  # share of the distinct rows of a step that are among them


@dataclass(frozen=True, kw_only=True)
class HotRowCurves:
    """The curves of all tables, made when one is first asked for: few problems split tables by heat."""

    accesses: tuple[AccessStatistics | None, ...]
    num_rows: tuple[int, ...]
    num_lookups: Floats  # (tables,) of one step

    @cached_property
    def of_table(self) -> tuple[HotRowCurve | None, ...]:
        """The curve of every table; ``None`` where nothing is known of its rows."""
        return hot_row_curves(self.accesses, self.num_rows, self.num_lookups)

    def at(self, table: Ints, hot_row_share: Floats) -> tuple[Floats, Floats]:
        """Return the hot shares of lookups and of distinct rows of each shard; 0 where no row is hot."""
        lookups, distinct = np.zeros(len(table)), np.zeros(len(table))
        for one, shards in by_owner(table, np.flatnonzero(hot_row_share > 0)):
            curve = self.of_table[one]
            if curve is not None:
                lookups[shards] = np.interp(hot_row_share[shards], curve.rows, curve.lookups)
                distinct[shards] = np.interp(hot_row_share[shards], curve.rows, curve.distinct)
        return lookups, distinct


def hot_row_curves(
    accesses: Sequence[AccessStatistics | None], num_rows: Sequence[int], num_lookups: Floats
) -> tuple[HotRowCurve | None, ...]:
    """Return the curves of tables of which each step makes ``num_lookups`` lookups, shape (tables,)."""
    classes = row_classes(accesses, num_rows, num_lookups)
    return tuple(None if one is None else _curve(one, rows) for one, rows in zip(classes, num_rows, strict=True))


def _curve(classes: RowClasses, num_rows: int) -> HotRowCurve:
    order = np.argsort(-classes.lookups, kind="stable")
    size = classes.size[order]
    return HotRowCurve(
        rows=np.append(_shares(size, num_rows), 1.0),
        lookups=np.append(_shares(size * classes.lookups[order]), 1.0),
        distinct=np.append(_shares(size * classes.chance[order]), 1.0),
    )


def _shares(amounts: Floats, total: float | None = None) -> Floats:
    """Running sums from 0, as shares of the total."""
    sums = np.concatenate([[0.0], np.cumsum(amounts)])
    shares: Floats = np.minimum(sums / (sums[-1] if total is None else total), 1.0)
    return shares


def hot_row_shares(curve: HotRowCurve | None) -> list[float]:
    """Return shares of the rows worth splitting at: those that serve round shares of the lookups."""
    shares: list[float] = [] if curve is None else np.interp(HOT_LOOKUP_SHARES, curve.lookups, curve.rows).tolist()
    return shares
