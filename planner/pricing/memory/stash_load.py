"""What the stashed tables of a placement weigh on every rank, and what their copies take."""

import numpy as np

from cost_models.arrays import Floats
from planner.domain.plan.placement import Placement
from planner.domain.plan.stash import StashLoad
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import HOST_BYTES_PER_BYTE
from planner.pricing.memory.ledger import sparse_capacity_bytes
from planner.pricing.memory.stash import Copies
from planner.pricing.placed_work import PlacedWork


def stashed_by_rank(problem: Problem, placement: Placement, placed: PlacedWork) -> Floats:
    """Return the stashed weights of every rank, (num_ranks,)."""
    marked = np.array([one.stash_weights for one in placement.tables], dtype=np.bool_)
    if not marked.any():
        return np.zeros(problem.world_size)
    stashed = marked[placement.table_of_shards()]
    weights = placed.weight_bytes(problem)
    found = np.zeros(problem.world_size)
    np.add.at(found, placed.rank[stashed], weights[stashed])
    return found


def stash_load(problem: Problem, placement: Placement, stashed_bytes: Floats, used_bytes: Floats) -> StashLoad | None:
    """Return what is stashed; ``None`` if the problem stashes nothing.

    ``stashed_bytes`` and ``used_bytes`` are of every rank: stashed weights, and all that tables take of the device.
    """
    copies = Copies.of(problem)
    if copies is None:
        return None
    free = sparse_capacity_bytes(problem) - used_bytes
    forward, backward = copies.wait_seconds(stashed_bytes, free)
    busiest = int(np.argmax(stashed_bytes))
    most = float(stashed_bytes[busiest])
    to_host, to_device = copies.bytes_per_second
    return StashLoad(
        num_tables=sum(one.stash_weights for one in placement.tables),
        busiest_rank=busiest,
        stashed_bytes=most,
        all_ranks_bytes=float(stashed_bytes.sum()),
        host_bytes=HOST_BYTES_PER_BYTE * most,
        to_host_seconds=most / to_host,
        to_device_seconds=most / to_device,
        forward_wait_seconds=float(forward.max()),
        backward_wait_seconds=float(backward.max()),
    )
