"""What shards add to the goals that are the largest of any rank: searches and checks of plans count alike."""

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.protocol import ShardWork
from planner.domain.problem.goals import CHECKPOINT_UPLOAD, FULLEST_RANK
from planner.domain.problem.problem import Problem
from planner.pricing.checkpoint import full_checkpoint_bytes
from planner.pricing.memory.ledger import EXACT, capacity_bytes, shard_ledger

#: Goals whose value is that of the rank with most of something.
RANK_GOALS = (FULLEST_RANK, CHECKPOINT_UPLOAD)


def amounts_of_shards(problem: Problem, goal: str, work: ShardWork, *, table: Ints) -> Floats:
    """Return what each shard adds to its rank, bytes, shape (num_shards,); a row block counts as a full one."""
    if goal == CHECKPOINT_UPLOAD:
        return full_checkpoint_bytes(problem, work, table=table, rows=work.shard_rows)
    ledger = shard_ledger(problem, work, table=table, stored_rows=work.shard_rows, ledger=EXACT)
    in_device: Floats = ledger.by_tier()[:, problem.cluster.device_tier]
    return in_device


def rank_factors(problem: Problem, goal: str) -> Floats:
    """Return what turns the bytes of each rank into the unit of a goal, shape (num_ranks,).

    A rank without any room holds nothing.
    """
    if goal == CHECKPOINT_UPLOAD:
        return np.ones(problem.world_size)
    return 1.0 / np.maximum(capacity_bytes(problem)[:, problem.cluster.device_tier], 1.0)
