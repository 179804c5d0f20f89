"""Bytes that no stash can take off a rank, as a limit of the search.

While activations are at their most, a rank holds at least what its stashed weights leave: a rank full of buffers and
optimizer state cannot make room, however many weights other ranks have. Every plan that stashes keeps the limit, so
that bounds under it hold.
"""

from dataclasses import replace

import numpy as np

from cost_models.analytic.sizes import stored_row_bytes
from cost_models.vocabulary import Kernel
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.pricing.memory.ledger import sparse_capacity_bytes
from planner.pricing.memory.stash import Copies
from planner.pricing.price_options import shape_work
from planner.solver.problem import SolverProblem

_ROUNDING = 1e-9  # relative, of sums of bytes


def with_resident_bytes(priced: SolverProblem, problem: Problem, families: Families) -> SolverProblem:
    """Return the problem with resident bytes as one more memory; ``priced`` has all shapes of the families."""
    copies = Copies.of(problem)
    if copies is None or problem.stash is None:
        return priced
    allowed = problem.stash.tables
    is_stashable = np.array(
        [
            family.kernel is Kernel.FUSED and (allowed is None or problem.tables[family.table].name in allowed)
            for family in families.families
        ]
    )
    work = shape_work(problem, families)
    weights = work.shard_rows * stored_row_bytes(work)
    largest = min(copies.most_of_any_rank, problem.stash.largest_shard_bytes)  # larger shards are never copied in time
    weights = np.where(is_stashable[priced.shape_family] & (weights <= largest), weights, 0.0)
    used, whole = priced.shape_bytes[:, problem.cluster.device_tier], sparse_capacity_bytes(problem)
    limits = [(np.maximum(0.0, used - weights), np.maximum(0.0, whole - copies.activation_bytes))]
    if problem.stash.stashes_all:
        limits += copies.limits_of_copies(weights, used, whole)
    amounts, rooms = (np.stack(of, axis=1) for of in zip(*limits, strict=True))
    return replace(
        priced,
        shape_bytes=np.concatenate([priced.shape_bytes, amounts], axis=1),
        shape_total_bytes=np.concatenate([priced.shape_total_bytes, amounts * priced.shape_ranks[:, None]], axis=1),
        capacity_bytes=np.concatenate([priced.capacity_bytes, rooms * (1 + _ROUNDING)], axis=1),
    )
