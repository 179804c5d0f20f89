"""Whether what a plan stashes fits: memory and waits of every rank, followed through the dense part of a step.

Shares no formula with the choice of tables: it follows one rank through the step event by event.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Floats
from cost_models.vocabulary import Kernel
from planner.domain.formats.units import format_bytes, format_seconds
from planner.domain.plan.placement import Placement
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.errors import Issue

_ROUNDING = 1e-9  # relative, of sums of bytes and seconds
_HOST_LINK = "host_link_bytes_per_second"
_HOST_LINK_BACK = "host_link_return_bytes_per_second"


def stash_issues(problem: Problem, placement: Placement, used_bytes: Floats, whole_bytes: Floats) -> Iterator[Issue]:
    """Yield what is wrong with the stashed tables of a placement.

    ``used_bytes`` are what tables take of each rank's device, ``whole_bytes`` what they may take while no activations
    are there, (num_ranks,) each.
    """
    yield from _table_issues(problem, placement)
    if problem.stash is None:
        return
    stashed = stashed_bytes(problem, placement)
    for rank in range(problem.world_size):
        free = float(whole_bytes[rank] - used_bytes[rank])
        missing, waits = follow(problem, stashed_bytes=float(stashed[rank]), free_bytes=free)
        if missing > _ROUNDING * whole_bytes[rank]:
            yield Issue(
                code="memory",
                pointer=f"/ranks/{rank}",
                message=(
                    f"rank {rank} lacks {format_bytes(missing)} for activations when {format_bytes(stashed[rank])} of"
                    " its weights are stashed"
                ),
                hint="stash more tables, or plan again",
            )
        allowed = problem.stash.max_wait_seconds
        for wait, direction in zip(waits, ("to the host", "back"), strict=True):
            if wait > allowed + _ROUNDING * max(wait, allowed) + _ROUNDING:
                yield Issue(
                    code="stash-wait",
                    pointer=f"/ranks/{rank}",
                    message=(
                        f"rank {rank} waits {format_seconds(wait)} for the copies of stashed weights {direction}, at"
                        f" most {format_seconds(allowed)} are allowed"
                    ),
                    hint="stash less, or raise model.stash.max_wait_seconds",
                )


def _table_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    stash = problem.stash
    for index, placed in enumerate(placement.tables):
        if not placed.stash_weights:
            continue
        reason, hint = "", "plan again"
        if stash is None:
            reason, hint = "is stashed, and the spec has no model.stash", "give model.stash, or plan again"
        elif stash.tables is not None and placed.name not in stash.tables:
            reason, hint = "is stashed, and model.stash.tables leaves it out", "add it, or plan again"
        elif placed.compute_kernel is not Kernel.FUSED:
            reason = f"is stashed with the kernel {placed.compute_kernel.label}; only fused can be"
        if reason:
            yield Issue(code="stash", pointer=f"/tables/{index}", message=f'table "{placed.name}" {reason}', hint=hint)


def stashed_bytes(problem: Problem, placement: Placement) -> Floats:
    """Return the stashed weights of every rank, counted from the rectangles, (num_ranks,)."""
    types = {table.name: table.data_type for table in problem.tables}
    found = np.zeros(problem.world_size)
    for placed in placement.tables:
        if placed.stash_weights and placed.name in types:
            data_type = DATA_TYPES.get(placed.data_type) or types[placed.name]
            shards = placed.shards
            row_bytes = shards.num_columns * data_type.element_bytes + data_type.row_overhead_bytes
            np.add.at(found, shards.rank, shards.num_rows * row_bytes)
    return found


def follow(problem: Problem, *, stashed_bytes: float, free_bytes: float) -> tuple[float, tuple[float, float]]:
    """Follow one rank through the dense part of a step.

    Returns the bytes that activations lack at their peak, and the seconds that dense compute waits for the copies to
    the host and for the copies back.
    """
    dense, numbers = problem.dense, problem.cluster.hardware.numbers
    peak = dense.activation_bytes or 0.0
    missing = max(0.0, peak - free_bytes - stashed_bytes)
    if stashed_bytes <= 0 or peak <= 0 or problem.stash is None:
        return missing, (0.0, 0.0)
    to_device = numbers[_HOST_LINK].value * problem.stash.link_share
    back = numbers.get(_HOST_LINK_BACK, numbers[_HOST_LINK])
    to_host = back.value * problem.stash.link_share
    # Forward: activations grow until they fill what is free; whether or not they do, the pass ends.
    forward, growth = dense.forward_seconds or 0.0, min(peak, max(free_bytes, 0.0))
    full_at = forward * growth / peak
    copied_at = stashed_bytes / to_host
    forward_wait = max(0.0, copied_at - full_at)
    # Backward: copies begin when activations leave the weights room, and lookups wait for their end.
    backward = dense.backward_seconds or 0.0
    begin_at = backward * (1.0 - growth / peak)
    backward_wait = max(0.0, begin_at + stashed_bytes / to_device - backward)
    return missing, (forward_wait, backward_wait)
