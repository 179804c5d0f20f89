"""Seconds of shards: what the cost model predicts, and what a plan pays that no cost model prices."""

import numpy as np

from cost_models.arrays import Ints
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import CostModel, ShardSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase
from planner.domain.problem.problem import Problem
from planner.pricing.checkpoint import with_checkpoints
from planner.pricing.replicas.sync import sync_price
from planner.pricing.step.phases import in_phases_of, num_phases


def price_work(
    problem: Problem, work: ShardWork, *, table: Ints, cost_model: CostModel, hardware: Hardware
) -> ShardSeconds:
    """Return the seconds of each shard in every phase: the cost model's, of checkpoints, and of replicas."""
    predicted = with_checkpoints(problem, work, cost_model.predict(work, hardware), table=table, hardware=hardware)
    if num_phases(problem) == NUM_PHASES:
        return predicted
    seconds = in_phases_of(problem, predicted.seconds, 0.0)
    evidence = in_phases_of(problem, predicted.evidence, Evidence.MEASURED)
    if problem.is_replicated:
        synced = sync_price(problem, work, hardware)
        seconds[:, Phase.REPLICA_SYNC] = synced.seconds
        evidence[:, Phase.REPLICA_SYNC] = np.where(synced.seconds > 0, synced.evidence, Evidence.MEASURED)
    return ShardSeconds(seconds=seconds, evidence=evidence)
