"""Measured lookups, gathered into launches: the shards that were timed together, and how long they took."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from cost_models.learned.lookups.columns import LookupColumns, columns_of_rows
from cost_models.measurements.schema import Measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """Shards, (num_shards,), whose ``launch`` is sorted; and launches, (num_launches,)."""

    columns: LookupColumns
    table: NDArray[np.str_]  # (num_shards,)
    launch: Ints  # (num_shards,): position of the shard's launch
    task: NDArray[np.str_]
    ranks_per_host: Ints
    targets: tuple[str, ...]  # ("forward", "backward"), or ("both",) where only their sum was measured
    seconds: Floats  # (num_launches, num_targets), > 0

    @property
    def num_launches(self) -> int:
        """Number of launches."""
        return len(self.ranks_per_host)

    @property
    def num_shards(self) -> Floats:
        """Shards of each launch."""
        return np.bincount(self.launch, minlength=self.num_launches).astype(np.float64)

    def take(self, chosen: Ints) -> "Launches":
        """Return some of the launches, in this order."""
        position = np.full(self.num_launches, -1)
        position[chosen] = np.arange(len(chosen))
        of_shard = position[self.launch]
        by_shard = np.argsort(of_shard, kind="stable")
        by_shard = by_shard[of_shard[by_shard] >= 0]
        return Launches(
            columns=self.columns.take(by_shard),
            table=self.table[by_shard],
            launch=of_shard[by_shard],
            task=self.task[chosen],
            ranks_per_host=self.ranks_per_host[chosen],
            targets=self.targets,
            seconds=self.seconds[chosen],
        )


def launches(rows: Measurements) -> Launches:
    """Gather the lookups of ``rows``; other kinds of rows are left out.

    Raises
    ------
    ValueError
        There are no lookups, or they are of several devices or implementations: a model is of one.
    """
    rows = rows.take(np.flatnonzero(rows.text("kind") == "lookup"))
    if rows.num_rows == 0:
        raise ValueError("Expected rows of lookups; there are none.")
    for name in ("device", "implementation"):
        if len(several := np.unique(rows.text(name))) > 1:
            raise ValueError(f"Expected rows of one {name}, not of {', '.join(several)}; choose one of them.")
    rows = rows.take(np.argsort(rows.counts("launch"), kind="stable"))
    _, first, launch = np.unique(rows.counts("launch"), return_index=True, return_inverse=True)
    heads = rows.take(first)
    apart = np.stack([heads.numbers("forward_seconds"), heads.numbers("backward_seconds")], axis=1)
    has_both = bool(np.all(apart > 0))  # NaN where not measured
    seconds = apart if has_both else heads.numbers("seconds")[:, None]
    if not np.all(seconds > 0):
        raise ValueError("Expected seconds > 0 in every row of a lookup.")
    return Launches(
        columns=columns_of_rows(rows),
        table=rows.text("table"),
        launch=launch.astype(np.int64),
        task=heads.text("task"),
        ranks_per_host=heads.counts("ranks_per_host"),
        targets=("forward", "backward") if has_both else ("both",),
        seconds=seconds,
    )
