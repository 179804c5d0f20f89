"""How distinct rows grow with lookups, as a sketch shows."""

import numpy as np

from planner.access.sketches.cardinality import STANDARD_ERROR, estimate
from planner.access.sketches.fitting import Footprint
from planner.access.sketches.sketch import THINNED_INDEX_BITS, TableSketch
from planner.access.sketches.windows import NUM_PARTS

_PART_ERROR = 0.003  # of parts of batches
_BATCH_ERROR = 0.002
_LEVEL_ERROR = STANDARD_ERROR / 2 ** (THINNED_INDEX_BITS / 2)
_SPREAD = 0.02  # of distinct rows among windows or batches
_APART = 2.0  # thinned batches are for more lookups than windows have


def counted_rows(sketch: TableSketch) -> list[tuple[float, float]]:
    """Return distinct rows by their lookups, as they were counted: more lookups never have fewer."""
    footprint = footprint_of(sketch)
    if footprint is None:
        return []
    order = np.lexsort((-footprint.relative_error, footprint.lookups))
    lookups, first = np.unique(footprint.lookups[order][::-1], return_index=True)  # of equals the best known one
    rows = np.maximum.accumulate(footprint.distinct_rows[order][::-1][first])
    return list(zip(lookups.tolist(), np.minimum(rows, lookups).tolist(), strict=True))


def footprint_of(sketch: TableSketch) -> Footprint | None:
    """Return the footprint of a sketch; ``None`` of a table that is never looked up.

    Of windows of lookups that follow each other; of one batch, exactly; of more lookups than the
    largest window has from thinned batches; and of all from the registers of all rows.
    """
    if not sketch.lookups:
        return None
    points = [
        (lookups / windows, rows / windows, _PART_ERROR if size < NUM_PARTS else _error_of(windows))
        for size, (windows, lookups, rows) in enumerate(sketch.windows.tolist())
        if windows
    ]
    followed = max((lookups for lookups, _, _ in points), default=0.0)
    points.append((sketch.lookups_per_batch, sketch.distinct_rows_per_batch, _BATCH_ERROR))
    points += [
        (float(level.lookups), estimate(level.registers), _error_of(level.batches))
        for level in sketch.thinned
        if 1 < level.batches < sketch.batches and level.lookups > _APART * followed
    ]
    if sketch.batches > 1:
        points.append((float(sketch.lookups), sketch.distinct_rows, sketch.distinct_error))
    lookups, distinct, errors = np.array(points).T
    return Footprint(lookups=lookups, distinct_rows=distinct, relative_error=errors)


def _error_of(num: int) -> float:
    """Return the relative error of the mean of some estimates, of windows or of batches that differ."""
    return float(np.hypot(_LEVEL_ERROR, _SPREAD / num**0.5))
