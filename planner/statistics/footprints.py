"""How distinct rows grow with lookups: of a sketch, and of a reuse histogram."""

import numpy as np
from numpy.typing import NDArray

from planner.statistics.cardinality import STANDARD_ERROR, estimate
from planner.statistics.fitting import Footprint
from planner.statistics.sketch import THINNED_INDEX_BITS, TableSketch

Floats = NDArray[np.float64]

_PARTS_OF_BATCH = 2.0 ** -np.arange(1.0, 17.0, 2.0)
_PART_ERROR = 0.003  # of a bin whose rows are all taken for its mean row
_BATCH_ERROR = 0.002
_LEVEL_ERROR = STANDARD_ERROR / 2 ** (THINNED_INDEX_BITS / 2)
_SPREAD_OF_BATCHES = 0.02  # of one batch's distinct rows among batches; less for the mean of several
_LEAST_ROWS = 1.0


def footprint_of(sketch: TableSketch) -> Footprint | None:
    """Return the footprint of a sketch; ``None`` of a table that is never looked up.

    Within a batch from the reuse histogram, of one batch exactly, of more from thinned batches,
    and of all from the registers of all rows.
    """
    if not sketch.lookups:
        return None
    points = batch_footprint(
        sketch.reuse_rows.astype(np.float64) / sketch.batches, sketch.reuse_lookups.astype(np.float64) / sketch.batches
    )
    more = [
        (
            float(level.lookups),
            estimate(level.registers),
            np.hypot(_LEVEL_ERROR, _SPREAD_OF_BATCHES / level.batches**0.5),
        )
        for level in reversed(sketch.thinned)
        if 1 < level.batches < sketch.batches and level.lookups
    ]
    if sketch.batches > 1:
        more.append((float(sketch.lookups), sketch.distinct_rows, sketch.distinct_error))
    columns = np.array(more).reshape(-1, 3).T
    return Footprint(
        lookups=np.concatenate([points.lookups, columns[0]]),
        distinct_rows=np.concatenate([points.distinct_rows, columns[1]]),
        relative_error=np.concatenate([points.relative_error, columns[2]]),
    )


def batch_footprint(rows: Floats, lookups: Floats) -> Footprint:
    """Return the footprint of one batch and of random parts of it.

    A row that the batch looks up c times is in a part s of its lookups with probability
    1 - (1 - s)^c.

    Parameters
    ----------
    rows, lookups
        Of the batch, by bin of the reuse histogram: distinct rows, and their lookups.
    """
    total = float(lookups.sum())
    used = rows > 0
    repeats = lookups[used] / rows[used]
    parts = _PARTS_OF_BATCH[_PARTS_OF_BATCH * total >= _LEAST_ROWS]
    distinct = (1.0 - (1.0 - parts[:, None]) ** repeats) @ rows[used]
    return Footprint(
        lookups=np.append(parts, 1.0) * total,
        distinct_rows=np.append(distinct, rows.sum()),
        relative_error=np.append(np.full(len(parts), _PART_ERROR), _BATCH_ERROR),
    )
