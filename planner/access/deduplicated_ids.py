"""Deduplicated ids: what a rank's batch sends where repeated ids of sequences are left out before their exchange.

Each rank leaves out the repeats of its own batch, table by table: ids of all features of a table together, never those
of two ranks. A table then sends and looks up :math:`W D(n)` ids in place of :math:`W n`, for :math:`W` ranks with
:math:`n` ids each and :math:`D` of :mod:`planner.access.distinct_rows`. A block of the rows has its share of the
distinct rows of one rank's batch, which is more even than that of the lookups. Where nothing is known of a table's
rows, no id is taken for a repeat.

References
----------
TorchRec 1.8.0 ``distributed/embedding.py``, ``ShardedEmbeddingCollection._dedup_indices``: ids of one sharding type are
made unique together, after the rows of all tables were numbered one behind the other. Pooled tables
(``embeddingbag.py``) have nothing like it: the sum of a bag needs every id of it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.access.row_blocks import RowBlocks


@dataclass(frozen=True, kw_only=True)
class DeduplicatedIds:
    """The ids of one rank's batch before and after repeats are left out; arrays of shape (num_tables,)."""

    is_deduplicated: Bools  # sequences; pooled tables send all their ids
    batch_ids: Floats  # before
    unique_ids: Floats  # after; of pooled tables the same
    row_blocks: RowBlocks  # of one rank's batch

    @classmethod
    def of(cls, *, is_pooled: Bools, batch_ids: Floats, distinct_rows: Floats, row_blocks: RowBlocks) -> Self:
        """Leave out repeats of the tables that are not pooled; ``distinct_rows`` is NaN where nothing is known."""
        unique = np.where(is_pooled | np.isnan(distinct_rows), batch_ids, np.minimum(distinct_rows, batch_ids))
        return cls(is_deduplicated=~is_pooled, batch_ids=batch_ids.copy(), unique_ids=unique, row_blocks=row_blocks)

    def rows_on_the_wire(self, outputs: Floats) -> Floats:
        """Return the rows that come back to a rank: one for each id of a sequence, ``outputs`` of pooled tables."""
        rows: Floats = np.where(self.is_deduplicated, self.unique_ids, outputs)
        return rows

    def with_heaviest(self, table: Ints, num_blocks: Ints, parts: Floats) -> Floats:
        """Return ``parts``, and of deduplicated tables what the heaviest block's distinct rows make up the table's by.

        One entry per shard, as in :meth:`planner.access.row_blocks.RowBlocks.heaviest`.
        """
        of_unique = self.row_blocks.heaviest(table, num_blocks)[1]
        heaviest: Floats = np.where(self.is_deduplicated[table], of_unique, parts)
        return heaviest
