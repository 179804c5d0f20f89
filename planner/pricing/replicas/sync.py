r"""What a step pays for keeping sharding groups alike: averages of weights and optimizer state over the replicas.

Every ``sync_interval_steps`` steps each rank adds up what it holds with the ranks of equal position in all other groups
[1]: one all-reduce of all weights of a type, one of all optimizer state. Nothing else runs. Of a shard with ``b``
bytes that is

.. math:: \frac{b_{weights} \cdot pace(M_{weights}) + b_{state} \cdot pace(M_{state})}{interval}

a step, with ``M`` the bytes of an even share of all tables: as with every other collective, a shard's seconds may not
depend on what other tables choose. The starts of the messages are the same whatever lies where, and are added to each
plan and bound (:func:`sync_start_seconds`). Replicated tables (``data_parallel``) are not averaged: their gradients are
added up over all ranks of the job in every step.

NCCL reduces the tensors in place, so that an average takes no memory of its own. Weights and state are averaged whole,
however few rows a step changed.

References
----------
.. [1] TorchRec 1.8.0 ``model_parallel.py``: ``DMPCollection._cache_sync_tensors`` and ``_allreduce_tensors``
   (``allreduce_coalesced`` of the tensors of one type, weights first, each waited for).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import stored_row_bytes
from cost_models.arrays import Floats
from cost_models.collectives.collectives import Network
from cost_models.hardware.hardware import Hardware, Limit
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_REPLICATED, Evidence
from planner.domain.plan.replicas import ReplicaLoad
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.table import Table
from planner.pricing.placed_work import PlacedWork


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPrice:
    """What averages take of each shard in a step, and how well that is known."""

    seconds: Floats  # (num_shards,)
    bytes: Floats  # (num_shards,) of weights and state, of each average
    evidence: Evidence


def replica_network(groups: ReplicaGroups, hardware: Hardware) -> Network:
    """Return the links among the ranks that hold the same shards, of groups whose size is decided."""
    replicas = groups.replicas_of(groups.sizes[0])
    return Network(
        hardware=hardware,
        num_ranks=replicas.num_ranks,
        ranks_per_host=replicas.ranks_per_host,
        pod_size=replicas.pod_size,
        job=replicas.job,
    )


def sync_price(problem: Problem, work: ShardWork, hardware: Hardware) -> SyncPrice:
    """Return what averages over the replicas take of each shard; nothing where there is one group."""
    none = np.zeros(work.num_shards)
    groups = problem.replica_groups
    if groups is None or not problem.is_replicated:
        return SyncPrice(seconds=none, bytes=none, evidence=Evidence.MEASURED)
    network = replica_network(groups, hardware)
    is_synced = ~IS_REPLICATED[work.scheme]
    rows = np.where(is_synced, work.shard_rows, 0).astype(np.float64)
    weights = rows * stored_row_bytes(work)
    state = rows * (work.shard_columns * work.optimizer_element_bytes + work.optimizer_row_bytes)
    if not groups.include_optimizer_state:
        state = none
    sizes = _message_bytes(problem)
    parts = [network.all_reduce(held, np.array([size])) for held, size in zip((weights, state), sizes, strict=True)]
    return SyncPrice(
        seconds=sum((part.seconds for part in parts), start=none) / groups.sync_interval_steps,
        bytes=weights + state,
        evidence=max(part.evidence for part in parts),
    )


def sync_start_seconds(problem: Problem, hardware: Hardware) -> tuple[float, Evidence]:
    """Return what the starts of averages take of a step on every rank, and how well that is known."""
    groups = problem.replica_groups
    synced = [table for table in problem.tables if _may_be_sharded(table)]
    if groups is None or not problem.is_replicated or not synced:
        return 0.0, Evidence.MEASURED
    start = replica_network(groups, hardware).start_seconds("all_reduce", "all")
    has_state = groups.include_optimizer_state and any(table.optimizer.state_bytes(1, 1) for table in synced)
    messages = len({table.data_type.name for table in synced}) + has_state
    return messages * start.value / groups.sync_interval_steps, start.evidence


def sync_limits(problem: Problem, placed: PlacedWork) -> tuple[Floats, Floats]:
    """Return the lower and upper seconds that averages take of a step on every rank, (num_ranks,) each."""
    lower, upper = (_at_limit(problem, placed, limit) for limit in (Limit.FASTEST, Limit.SLOWEST))
    return lower, upper


def _at_limit(problem: Problem, placed: PlacedWork, limit: Limit) -> Floats:
    hardware = problem.cluster.hardware.at_limit(limit)
    seconds = sync_price(problem, placed.work, hardware).seconds
    by_rank: Floats = placed.by_rank(problem, seconds[:, None])[:, 0] + sync_start_seconds(problem, hardware)[0]
    return by_rank


def replica_load(problem: Problem, bytes_by_rank: Floats, seconds_by_rank: Floats) -> ReplicaLoad | None:
    """Return how the groups lie and what keeping them alike takes; ``None`` without replica groups.

    ``bytes_by_rank`` are those of one average, ``seconds_by_rank`` those of a step, both (num_ranks,).
    """
    groups = problem.replica_groups
    if groups is None:
        return None
    return ReplicaLoad(
        world_size=groups.job.world_size,
        ranks_per_host=groups.job.ranks_per_host,
        sharding_group_size=problem.world_size,
        num_groups=groups.num_groups(problem.world_size),
        node_group_size=problem.cluster.ranks_per_group,
        use_inter_host_allreduce=groups.use_inter_host_allreduce,
        sync_interval_steps=groups.sync_interval_steps,
        include_optimizer_state=groups.include_optimizer_state,
        bytes=float(bytes_by_rank.max()) if problem.is_replicated else 0.0,
        seconds=float(seconds_by_rank.max()) * groups.sync_interval_steps,
        seconds_per_step=float(seconds_by_rank.max()),
    )


def _may_be_sharded(table: Table) -> bool:
    allowed, pinned = table.constraints.sharding_types, table.constraints.pinned
    if pinned is not None:
        return not pinned.sharding_type.is_replicated
    return allowed is None or any(not scheme.is_replicated for scheme in allowed)


def _message_bytes(problem: Problem) -> tuple[float, float]:
    """Return the bytes of weights and of state of a rank in one average, if all tables were spread evenly."""
    synced = [table for table in problem.tables if _may_be_sharded(table)]
    weights = sum(table.weight_bytes for table in synced)
    state = sum(table.optimizer.state_bytes(table.num_embeddings, table.embedding_dim) for table in synced)
    return weights / problem.world_size, state / problem.world_size
