"""What the ranks of an assignment take by the sums over their shards: learned lookups, and what stays analytic."""

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Floats
from cost_models.learned.lookups.compute import LearnedCompute
from cost_models.learned.ranks.assigned import RankLaw
from cost_models.vocabulary import NUM_PHASES, Phase

COMPUTE_PHASES = (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE)


def by_phase(learned: Floats, analytic: Floats) -> Floats:
    """Return learned seconds of forward and backward; where only both were timed, in the analytic ratio."""
    if learned.shape[1] == len(COMPUTE_PHASES):
        return learned
    total = analytic.sum(axis=1, keepdims=True)
    share = np.divide(analytic, total, out=np.full(analytic.shape, 1 / len(COMPUTE_PHASES)), where=total > 0)
    result: Floats = learned * share
    return result


def compute_parts(learned: NDArray[np.float32], left: Floats, divided: Floats, known: Bools) -> Floats:
    """Return what :func:`compute_law` adds up, one row per shard.

    Parameters
    ----------
    learned
        What the compute model adds up, 0 for shards outside of what was measured; (num_shards, num_parts).
    left
        Analytic seconds that stay, (num_shards, NUM_PHASES).
    divided
        Analytic seconds of lookups that are learned: how to divide a launch that was timed as a whole.
    known
        Whose lookups are learned, (num_shards, 1).
    """
    return np.concatenate([learned, left, divided, known], axis=1)


def compute_law(compute: LearnedCompute, contention: float) -> RankLaw:
    """Return seconds of ranks, (N, NUM_PHASES), by sums of :func:`compute_parts`."""
    ends = np.cumsum([compute.num_parts, NUM_PHASES, len(COMPUTE_PHASES)])

    def law(sums: Floats) -> Floats:
        learned, left, divided, known = np.split(sums, ends, axis=1)
        seconds = left.copy()
        together = by_phase(compute.rank_seconds(learned, contention), divided)
        # Shards are counted: of the sums of those that left a rank, rounding leaves something, which is no launch.
        seconds[:, COMPUTE_PHASES] += np.where(known > 0, together, 0.0)
        return seconds

    return law
