"""A planning problem: everything that determines which plans are legal and how good they are."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from cost_models.vocabulary import DEVICE_KERNELS, Kernel
from planner.domain.expect import expect
from planner.domain.problem.checkpoint import Checkpoint
from planner.domain.problem.checkpoint_plan import CheckpointPlan
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.dense import Dense
from planner.domain.problem.goals import CHECKPOINT_UPLOAD, STEP_TIME, Goal
from planner.domain.problem.kv_cache import KvCache
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.serving import Serving
from planner.domain.problem.stash import Stash
from planner.domain.problem.table import Table

#: Of a training step; that of a problem with ``serving`` is REQUEST_LATENCY.
OBJECTIVES = ("step_time", "max_rank_time")
REQUEST_LATENCY = "request_latency"
#: The pipeline that fetches the rows of the next step ahead.
PREFETCH_PIPELINE = "train_prefetch_sparse_dist"
#: What a training pipeline holds at once (TorchRec ``PipelineType``).
PIPELINES = ("none", "train_sparse_dist", PREFETCH_PIPELINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Memory of every rank that tables may not use (TorchRec ``HeuristicalStorageReservation``).

    ``hbm_fraction`` of the capacity, ``collective_bytes`` of communication buffers (NCCL's, which TorchRec leaves to
    the margin), ``dense_multiplier`` x dense parameters (weights,
    gradients, optimizer state, DDP buckets), and ``input_copies`` copies of one local
    batch's ids (two pipelined batches with ten internal copies each). Where ranks have accelerators, ``ddr_fraction``
    of each rank's share of host memory stays free besides, for the system and the loading of data; TorchRec keeps none.
    """

    hbm_fraction: float = 0.15
    dense_multiplier: float = 6.0
    input_copies: int = 20
    collective_bytes: float = 0.0
    ddr_fraction: float = 0.0

    def __post_init__(self) -> None:
        expect(0 <= self.ddr_fraction < 1, "reserved_ddr_fraction in [0, 1)")
        expect(0 <= self.hbm_fraction < 1, "reserved_hbm_fraction in [0, 1)")
        expect(0 <= self.collective_bytes < math.inf, "reserved_collective_bytes >= 0")


#: What a host that serves keeps free besides the margin: the dense weights once, and one batch's ids
#: (TorchRec 1.8.0 ``InferenceStorageReservation``: ``multiplier=1`` for both).
SERVING_DENSE_MULTIPLIER, SERVING_INPUT_COPIES = 1.0, 1


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Tables, cluster, joint constraints and objective. Names are unique and cross-checked."""

    tables: tuple[Table, ...]
    cluster: Cluster
    batch_size_per_rank: int | None = None  # of a training step; None where requests are served
    serving: Serving | None = None
    #: element types on the wire and in outputs; ``None`` leaves them to the cost model
    forward_comm_dtype: str | None = None
    backward_comm_dtype: str | None = None
    output_dtype: str | None = None
    dense: Dense = field(default_factory=Dense)
    stash: Stash | None = None  # what may leave the device while the dense part runs; None: nothing
    pipeline: str = "train_sparse_dist"
    reservation: Reservation = field(default_factory=Reservation)
    same_rank: tuple[frozenset[int], ...] = ()  # groups of table indices
    apart: tuple[frozenset[int], ...] = ()  # groups of table indices
    runtime: str = "torchrec"
    #: kernels of tables that name none
    kernels: frozenset[Kernel] = DEVICE_KERNELS
    objective: str = "step_time"
    #: whether what a step pays once per sharding type counts, where the cost model and the runtime know it
    counts_starts: bool = True
    checkpoint: Checkpoint | None = None  # how the job is checkpointed, where the user says
    goals: tuple[Goal, ...] = ()  # in their order, ``step_time`` among them; () where the objective is all
    checkpoint_plan: CheckpointPlan | None = None  # of the checkpoint that the job starts from
    #: how the job is divided into sharding groups; ``cluster`` is one group where their size is decided, else all ranks
    replica_groups: ReplicaGroups | None = None
    #: whether repeated ids of sequences are left out before the exchange of ids; ``None``: the search decides
    use_index_dedup: bool | None = False

    def __post_init__(self) -> None:
        """Check what can be checked without names; ``api.specs.parse`` reports the rest with pointers."""
        expect(len(self.tables) > 0, "at least one table")
        expect((self.batch_size_per_rank is None) != (self.serving is None), "either batch_size_per_rank or serving")
        expect(self.batch_size_per_rank is None or self.batch_size_per_rank >= 1, "batch_size_per_rank >= 1")
        objectives = OBJECTIVES if self.serving is None else (REQUEST_LATENCY,)
        expect(self.objective in objectives, f"objective to be one of {', '.join(objectives)}")
        if self.serving is not None:
            expect(self.cluster.num_hosts == 1, "one host: requests are not shared between hosts")
            expect(self.pipeline == "none", 'pipeline "none" where requests are served')
            is_untrained = all(table.optimizer.name == "none" for table in self.tables)
            expect(is_untrained, 'optimizer "none" of every table where requests are served')
            expect(self.checkpoint is None, "no checkpoint where requests are served")
        names = [goal.name for goal in self.goals]
        expect(len(set(names)) == len(names), "each goal once")
        expect(not names or (self.objective == STEP_TIME and STEP_TIME in names), f"{STEP_TIME} among the goals")
        expect(self.checkpoint is not None or CHECKPOINT_UPLOAD not in names, f"a checkpoint for {CHECKPOINT_UPLOAD}")
        expect(self.pipeline in PIPELINES, f"pipeline to be one of {', '.join(PIPELINES)}")
        groups = self.replica_groups
        if groups is not None:
            expect(self.serving is None, "no replica groups where requests are served")
            size = groups.sizes[0] if groups.is_decided else groups.job.world_size
            expect(self.cluster.world_size == size, f"a cluster of {size} ranks")
            expect((self.cluster.job is not None) == groups.is_decided, "a group of the job as cluster, once decided")
        expect(self.use_index_dedup is False or self.serving is None, "no deduplication where requests are served")
        expect(len({t.name for t in self.tables}) == len(self.tables), "table names to be unique")

    @property
    def samples_per_rank(self) -> float:
        """Samples of one rank in a step, or its even share of a request."""
        if self.serving is not None:
            return self.serving.samples_per_request / self.world_size
        assert self.batch_size_per_rank is not None
        return float(self.batch_size_per_rank)

    @cached_property
    def batch_pooling(self) -> float:
        """Ids that a local batch brings to all tables, as their pooling factors have it."""
        return sum(f.pooling_factor for t in self.tables for f in t.features) * self.samples_per_rank

    @cached_property
    def stashable_bytes(self) -> float:
        """Weights of the tables that may be stashed, of all ranks together."""
        allowed = None if self.stash is None else self.stash.tables
        return sum(t.weight_bytes for t in self.tables if allowed is None or t.name in allowed)

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.cluster.world_size

    @property
    def all_ranks(self) -> Cluster:
        """The ranks of the whole job, whatever groups they are divided into."""
        return self.cluster if self.replica_groups is None else self.replica_groups.job

    @property
    def is_replicated(self) -> bool:
        """Whether the cluster is one of several sharding groups, each of which has a copy of the tables."""
        return self.cluster.job is not None and self.cluster.job_ranks > self.world_size

    def of_group(self, size: int) -> "Problem":
        """Return the problem of one sharding group of a size, which all groups have."""
        if self.replica_groups is None:
            raise ValueError("Expected a problem with replica groups.")
        decided = self.replica_groups.of_size(size)
        return replace(self, cluster=decided.cluster_of(size), replica_groups=decided)

    def of_each_choice(self) -> Iterator["Problem"]:
        """Yield the problem of every size of groups, each without and with deduplication where that is open."""
        for one in self.of_each_group():
            settings = (False, True) if one.use_index_dedup is None else (one.use_index_dedup,)
            for setting in settings:
                yield replace(one, use_index_dedup=setting)

    def of_each_group(self) -> Iterator["Problem"]:
        """Yield the problem of a group of each size that groups may have; the problem itself without a choice."""
        groups = self.replica_groups
        if groups is None or groups.is_decided:
            yield self
        else:
            yield from map(self.of_group, groups.sizes)

    @property
    def kv_cache(self) -> KvCache | None:
        """The cache of keys and values next to the tables, if there is one."""
        return None if self.serving is None else self.serving.kv_cache

    def of_kv_cache_size(self, size_bytes: float) -> "Problem":
        """Return the problem next to a cache of keys and values that takes so much of every rank."""
        if self.serving is None or self.serving.kv_cache is None:
            raise ValueError("Expected a problem with a cache of keys and values.")
        return replace(self, serving=replace(self.serving, kv_cache=self.serving.kv_cache.of_size(size_bytes)))

    def of_plan(
        self, world_size: int, kv_cache_bytes: float | None = None, *, use_index_dedup: bool = False
    ) -> "Problem":
        """Return the problem that a plan for so many ranks, with or without deduplication, is a plan of.

        That of sharding groups of its ranks, and of the cache of keys and values that it leaves ``kv_cache_bytes`` of
        every rank to, where they may have these sizes. Any other plan is judged against the largest group, and the
        smallest cache. Deduplication is the plan's where the problem leaves that open.
        """
        if self.use_index_dedup is None:
            return replace(self, use_index_dedup=use_index_dedup).of_plan(world_size, kv_cache_bytes)
        groups, cache = self.replica_groups, self.kv_cache
        if groups is not None and not groups.is_decided:
            return self.of_group(world_size if world_size in groups.sizes else groups.sizes[-1])
        if cache is not None and not cache.is_decided:
            if kv_cache_bytes is None or kv_cache_bytes not in cache.sizes_bytes:
                kv_cache_bytes = cache.least_bytes
            return self.of_kv_cache_size(kv_cache_bytes)
        return self
