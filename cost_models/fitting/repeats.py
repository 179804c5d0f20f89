"""How far a machine agrees with itself: launches that were measured more than once, over minutes.

No model of the launches can be nearer to their times than that, whatever it knows of them.
"""

from collections import defaultdict

import numpy as np

from cost_models.fitting.launches import Launches

_LEAST_TIMES = 5


def repeats_document(measured: Launches) -> dict[str, object] | None:
    """Return how often the same launches were measured, and how far the times lie from their median; else ``None``.

    A launch is the same where its task, its tables and the counts of each are. The difference is the mean of
    ``|seconds / median - 1|``, of forward and backward seconds together.
    """
    columns = measured.columns
    facts = np.stack([columns.lookups, columns.distinct_rows, columns.shard_rows, columns.row_bytes], axis=1)
    ends = np.cumsum(measured.num_shards.astype(np.int64))
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for launch, (start, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        tables = tuple(measured.table[start:end].tolist())
        places[measured.task[launch].item(), tables, facts[start:end].tobytes()].append(launch)
    several = [np.array(found) for found in places.values() if len(found) >= _LEAST_TIMES]
    if not several:
        return None
    seconds = measured.seconds.sum(axis=1)
    differences = np.concatenate([np.abs(seconds[found] / np.median(seconds[found]) - 1) for found in several])
    return {"launches": len(differences), "mean_relative_difference": float(differences.mean())}
