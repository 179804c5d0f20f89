"""Which launches a model learns from, is calibrated on and is judged by, so that none of it leaks.

Launches of one task, and launches of the same tables at the same widths, stay together: a repeated measurement never
sits on both sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Ints
from cost_models.fitting.launches import Launches

TRAINING_SHARE = 0.8
VALIDATION_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Positions of launches; no launch is in two of them."""

    training: Ints
    validation: Ints
    test: Ints


def split_by_task(launches: Launches, seed: int) -> Split:
    """Split into 80 %, 10 % and 10 % of the groups of launches that belong together."""
    group = groups(launches)
    random = np.random.default_rng(seed)
    num_groups = int(group.max()) + 1
    place = random.permutation(num_groups)[group] / num_groups
    order = random.permutation(launches.num_launches)
    place = place[order]
    return Split(
        training=order[place < TRAINING_SHARE],
        validation=order[(place >= TRAINING_SHARE) & (place < TRAINING_SHARE + VALIDATION_SHARE)],
        test=order[place >= TRAINING_SHARE + VALIDATION_SHARE],
    )


def groups(launches: Launches) -> Ints:
    """Return the group of each launch, 0, 1, ...: launches of one task or of equal shards are in one group."""
    _, by_task = np.unique(launches.task, return_inverse=True)
    _, by_shards = np.unique(_shards(launches), return_inverse=True)
    group = np.arange(launches.num_launches)
    while True:
        merged = group
        for label in (by_task, by_shards):
            least = np.full(int(label.max()) + 1, launches.num_launches)
            np.minimum.at(least, label, merged)
            merged = least[label]
        if np.array_equal(merged, group):
            break
        group = merged
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def _shards(launches: Launches) -> NDArray[np.str_]:
    """Return the shards of each launch as text, in an order that does not matter."""
    of = launches.columns
    facts = np.stack([of.shard_rows, of.shard_columns, of.row_bytes, of.lookups, of.outputs], axis=1).tolist()
    shards: list[list[str]] = [[] for _ in range(launches.num_launches)]
    for launch, table, fact in zip(launches.launch.tolist(), launches.table.tolist(), facts, strict=True):
        shards[launch].append(f"{table} {fact}")
    return np.array(["|".join(sorted(names)) for names in shards])
