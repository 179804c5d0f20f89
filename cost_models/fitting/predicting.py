"""What a compute model says of measured launches, of any numbers of ranks per host."""

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats
from cost_models.fitting.launches import Launches
from cost_models.learned.lookups.compute import LearnedCompute, sum_by_rank
from cost_models.learned.lookups.contention import Contention


def launch_seconds(compute: LearnedCompute, contention: Contention, launches: Launches) -> Floats:
    """Return the predicted seconds of launches of any numbers of ranks, (num_launches, num_targets)."""
    sums, of_launch = launch_sums(compute, contention, launches), contentions(contention, launches)
    seconds = np.empty((launches.num_launches, len(compute.targets)))
    for value in np.unique(of_launch):
        some = of_launch == value
        seconds[some] = compute.rank_seconds(sums[some], float(value))
    return seconds


def launch_sums(compute: LearnedCompute, contention: Contention, launches: Launches) -> Floats:
    """Return the summed parts of launches, (num_launches, num_parts)."""
    of_launch = contentions(contention, launches)
    sums = np.zeros((launches.num_launches, compute.num_parts))
    for value in np.unique(of_launch):
        shards = of_launch[launches.launch] == value
        parts = compute.parts(launches.columns.take(shards), float(value))
        sums += sum_by_rank(parts, launches.launch[shards], launches.num_launches)
    return sums


def contentions(contention: Contention, launches: Launches) -> Floats:
    """Return the contention of each launch."""
    return np.array([contention.of(ranks) for ranks in launches.ranks_per_host.tolist()])


def held_from(num_launches: int, members: int) -> NDArray[np.int64]:
    """Return which member leaves out which launch, -1 where there is but one; launches come in random order."""
    return np.arange(num_launches) % members if members > 1 else np.full(num_launches, -1)
