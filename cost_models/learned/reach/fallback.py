r"""What shards outside the measured range cost: the analytic model, anchored where measurements end.

With ``c(.)`` the nearest shard inside the range (each number moved to the end that it passes, code that was not
measured replaced by the fused kernel), ``L`` the learned and ``A`` the analytic seconds of a phase,

.. math:: L(c(x)) \, A(x) / A(c(x))

The analytic model alone says how seconds grow outside. At the ends of the range the seconds are the learned ones, so
that a search finds no step there that it could exploit, however far the hardware profile is from the machine that was
measured.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cost_models.analytic.sizes import element_bytes, output_rows
from cost_models.arrays import Floats
from cost_models.learned.reach.ranges import Range
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel

TINY = 1e-12


def nearest_measured(work: ShardWork, ranges: Mapping[str, Range]) -> ShardWork:
    """Return the shards moved into the ranges."""
    none, false = np.zeros(work.num_shards), np.zeros(work.num_shards, dtype=np.bool_)
    columns = _into(work.shard_columns.astype(np.float64), ranges["shard_columns"])
    rows = _into(work.shard_rows.astype(np.float64), ranges["shard_rows"])
    lookups = _into(work.lookups, ranges["lookups"])
    distinct = np.minimum(_into(work.distinct_rows, ranges["distinct_rows"]), np.minimum(lookups, rows))
    per_batch = np.maximum(output_rows(work) / np.maximum(work.batch_outputs, TINY), TINY)
    if_pooled = np.where(work.is_pooled, per_batch, float(work.num_ranks))
    state = _into(columns * work.optimizer_element_bytes + work.optimizer_row_bytes, ranges["optimizer_bytes_per_row"])
    return replace(
        work,
        kernel=np.full(work.num_shards, Kernel.FUSED, dtype=np.int8),
        shard_columns=columns.astype(np.int64),
        launch_columns=work.launch_columns * columns / work.shard_columns,
        shard_rows=rows.astype(np.int64),
        lookups=lookups,
        distinct_rows=distinct,
        batch_outputs=_into(output_rows(work), ranges["outputs"]) / if_pooled,
        is_pooled=~false,
        element_bytes=_into(work.element_bytes, ranges["bytes_per_weight"]),
        row_overhead_bytes=none,
        row_alignment_bytes=np.ones(work.num_shards),
        output_element_bytes=_into(element_bytes(work.output_element_bytes), ranges["output_bytes_per_weight"]),
        optimizer_element_bytes=none,
        optimizer_row_bytes=state,
        in_scm=false,
        is_weighted=false,
        is_trained=~false,
        hot_lookup_share=none,
        hot_distinct_share=none,
        hot_row_share=none,
    )


def anchored(learned: Floats, analytic: Floats, analytic_nearest: Floats) -> Floats:
    """Return the learned seconds of the nearest shards times how the analytic ones grow from there; any shape."""
    growth = np.divide(analytic, analytic_nearest, out=np.zeros(analytic.shape), where=analytic_nearest > 0)
    result: Floats = np.where(analytic_nearest > 0, learned * growth, analytic)
    return result


def _into(values: Floats, measured: Range) -> Floats:
    """Return values, those outside the range moved to its end; NaN stays."""
    return np.where(measured.holds(values), values, np.clip(values, measured.low, measured.high))
