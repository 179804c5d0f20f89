r"""Modified rows: how many rows of a table the incremental checkpoints of a training job store.

A step of ``n`` lookups is expected to change :math:`D(n)` distinct rows (:mod:`planner.access.distinct_rows`), ``k``
intervals of ``s`` steps :math:`D(k s n)`: lookups are taken as independent, so that a drift of the hot rows over hours,
which only adds rows, is not in it. Where nothing is known of the accesses every lookup may change another row.

What an increment stores is said by the policy (Check-N-Run [1]):

- ``consecutive``: rows changed since the last checkpoint of any kind, ``D(s n)`` each;
- ``one_shot``: rows changed since the last full one, ``D(k s n)`` in the k-th;
- ``intermittent``: the same, and a full one again as soon as the increments have become so large that going on costs
  more: after i increments of sizes :math:`S_1 \dots S_i`, parts of a full one,

  .. math:: 1 + S_1 + \dots + S_i \le (i + 1) S_i

  The left is what the next i + 1 checkpoints cost if they repeat the cycle, the right what they cost at least if
  increments go on. ``full_every`` is the latest.

References
----------
.. [1] A. Eisenman et al., "Check-N-Run: a checkpointing system for training deep learning recommendation models"
   (NSDI 2022, arXiv 2010.08679), incremental checkpointing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from planner.access.distinct_rows import expected_distinct_rows
from planner.domain.problem.access import AccessStatistics
from planner.domain.problem.checkpoint import Checkpoint

_MOST_POINTS = 8  # increments of a cycle whose rows are counted; those between are interpolated
_MOST_COUNTED = 256  # increments that the rule of ``intermittent`` is tried on one by one
_AT_ONCE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifiedRows:
    """Rows in the increments of a cycle, which some of them stand for."""

    full_every: int  # checkpoints of a cycle, the full one among them
    rows: Floats  # (num_tables, K), growing from left to right; no column where every checkpoint is full
    num_increments: Floats  # (K,) increments that each column stands for, full_every - 1 together


def modified_rows(
    checkpoint: Checkpoint,
    *,
    accesses: Sequence[AccessStatistics | None],
    num_rows: Sequence[int],
    lookups_per_step: Floats,
    is_trained: NDArray[np.bool_],
    row_bytes: Floats,
) -> ModifiedRows:
    """Count the rows that increments store; all but ``checkpoint`` have one entry per table.

    ``row_bytes`` are those of a row on the store, by which ``intermittent`` weighs the tables.
    """

    def changed(intervals: Ints) -> Floats:
        lookups = lookups_per_step[:, None] * checkpoint.interval_steps * intervals
        rows = np.array(num_rows, dtype=np.float64)[:, None]
        distinct = np.fmin(expected_distinct_rows(accesses, num_rows, lookups), np.minimum(lookups, rows))
        return np.where(is_trained[:, None], distinct, 0.0)

    latest = checkpoint.full_every
    if latest == 1:
        return ModifiedRows(full_every=1, rows=np.zeros((len(num_rows), 0)), num_increments=np.zeros(0))
    if checkpoint.policy == "consecutive":
        return ModifiedRows(
            full_every=latest, rows=changed(np.ones(1, np.int64)), num_increments=np.full(1, latest - 1.0)
        )
    if checkpoint.policy == "intermittent":
        whole = float(np.sum(row_bytes * np.array(num_rows, dtype=np.float64)))
        latest = _full_again(lambda increments: row_bytes @ changed(increments) / whole, latest)
    points = _points(latest - 1)
    return ModifiedRows(full_every=latest, rows=changed(points), num_increments=_stands_for(points, latest - 1))


def _points(num_increments: int) -> Ints:
    """Return increments, counted from 1, whose rows are counted: the first, the last and some between."""
    return np.unique(np.geomspace(1, num_increments, _MOST_POINTS).round().astype(np.int64))


def _stands_for(points: Ints, num_increments: int) -> Floats:
    """Return how many of all increments each point stands for, by linear interpolation."""
    every, unit = np.arange(1, num_increments + 1), np.eye(len(points))
    return np.array([np.interp(every, points, one).sum() for one in unit])


def _full_again(sizes_of: Callable[[Ints], Floats], latest: int) -> int:
    """Return the checkpoints of a cycle by the rule of the module docstring; sizes are parts of a full one.

    Every increment is counted until the rule decides, of cycles longer than ``_MOST_COUNTED`` only some beyond.
    """
    sizes, counted = np.zeros(0), min(latest - 1, _MOST_COUNTED)
    for first in range(1, counted + 1, _AT_ONCE):
        sizes = np.append(sizes, sizes_of(np.arange(first, min(first + _AT_ONCE, counted + 1))))
        if decided := _first_that_pays(sizes):
            return 1 + decided
    if counted == latest - 1:
        return latest
    some = np.unique(np.geomspace(counted + 1, latest - 1, _MOST_POINTS).round().astype(np.int64))
    beyond = np.interp(np.arange(counted + 1, latest), some, sizes_of(some))
    return 1 + (_first_that_pays(np.append(sizes, beyond)) or latest - 1)


def _first_that_pays(sizes: Floats) -> int:
    """Return the increment, counted from 1, after which all is stored again; 0 if there is none."""
    increments = np.arange(1, len(sizes) + 1)
    pays = 1 + np.cumsum(sizes) <= (increments + 1) * sizes
    return int(np.argmax(pays)) + 1 if pays.any() else 0
