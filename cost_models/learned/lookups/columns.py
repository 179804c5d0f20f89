"""What a lookup costs by: the columns that the learned compute model reads of each shard.

The same columns come from :class:`~cost_models.protocol.ShardWork` when a plan is priced and from measured rows when a
model is fitted, so both mean the same.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import distinct_rows, element_bytes, output_rows, stored_row_bytes
from cost_models.arrays import Floats, take_rows
from cost_models.measurements.schema import Measurements
from cost_models.protocol import ShardWork


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupColumns:
    """One shard per row; every array is float64 of shape (num_shards,)."""

    lookups: Floats  # rows gathered per step
    distinct_rows: Floats  # different ones among them; the most there can be if nothing is known
    shard_rows: Floats
    shard_columns: Floats
    row_bytes: Floats  # of a stored row
    output_row_bytes: Floats
    outputs: Floats  # rows written per step
    state_bytes: Floats  # optimizer state of a row

    @property
    def num_shards(self) -> int:
        """Number of rows."""
        return int(self.lookups.shape[0])

    def take(self, rows: np.ndarray | slice) -> "LookupColumns":
        """Return some of the shards."""
        return take_rows(self, rows)


def columns_of_work(work: ShardWork) -> LookupColumns:
    """Return the columns of shards to be priced."""
    columns = work.shard_columns.astype(np.float64)
    rows = work.shard_rows.astype(np.float64)
    return LookupColumns(
        lookups=work.lookups,
        distinct_rows=distinct_rows(work),
        shard_rows=rows,
        shard_columns=columns,
        row_bytes=stored_row_bytes(work),
        output_row_bytes=columns * element_bytes(work.output_element_bytes),
        outputs=output_rows(work),
        state_bytes=columns * work.optimizer_element_bytes + work.optimizer_row_bytes,
    )


def columns_of_rows(rows: Measurements) -> LookupColumns:
    """Return the columns of measured lookups; empty optimizer columns mean that it keeps no state."""
    columns, shard_rows, lookups = rows.numbers("shard_columns"), rows.numbers("shard_rows"), rows.numbers("lookups")
    state = columns * np.nan_to_num(rows.numbers("optimizer_element_bytes"))
    return LookupColumns(
        lookups=lookups,
        distinct_rows=np.fmin(rows.numbers("distinct_rows"), np.minimum(lookups, shard_rows)),
        shard_rows=shard_rows,
        shard_columns=columns,
        row_bytes=columns * rows.numbers("element_bytes"),
        output_row_bytes=columns * element_bytes(rows.numbers("output_element_bytes")),
        outputs=rows.numbers("outputs"),
        state_bytes=state + np.nan_to_num(rows.numbers("optimizer_row_bytes")),
    )
