"""What a plan pays whatever lies where: searches and bounds leave it out, and it is added to both in the end."""

from planner.domain.problem.problem import Problem
from planner.pricing.replicas.sync import sync_start_seconds
from planner.pricing.serving import latency_without_shards
from planner.pricing.step.index_dedup import exposed_dedup_seconds


def seconds_without_shards(problem: Problem, shard_seconds: float) -> float:
    """Return what a plan takes beyond its shards and kinds: messages of a request, starts of averages over replicas,
    repeated ids that are left out.

    ``shard_seconds`` are those of its slowest ranks.
    """
    starts, _ = sync_start_seconds(problem, problem.cluster.hardware)
    return latency_without_shards(problem, shard_seconds) + starts + exposed_dedup_seconds(problem)
