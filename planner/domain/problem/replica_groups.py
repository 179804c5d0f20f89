"""Replica groups (2D parallelism): tables are sharded inside groups of ranks, and every group has a copy of all tables.

TorchRec's ``DMPCollection`` divides the ranks of a job into sharding groups of one size and gives each the same plan.
Every so many steps it averages the weights, and the optimizer state, over the ranks of equal position in all groups. Of
a job of W ranks in groups of S the ranks of a group are (:meth:`ReplicaGroups.stride`)

- contiguous (``use_inter_host_allreduce``): ``g S ... g S + S - 1``, with averages over ranks S apart;
- else every (W / S)-th rank, with averages over W / S neighbours, inside hosts where these are large enough.

References
----------
TorchRec 1.8.0 ``model_parallel.py``: ``DMPCollection._create_process_groups``, ``sync``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cost_models.collectives.whole_job import WholeJob
from planner.domain.expect import expect
from planner.domain.problem.cluster import Cluster

#: A group of one rank shards nothing: that is ``data_parallel``.
MIN_GROUP_SIZE = 2
#: Optimizers of which ``DMPCollection`` finds the state: it reads "sum", which others do not have; sgd has no state.
SYNCED_OPTIMIZERS = frozenset({"none", "sgd", "adagrad", "rowwise_adagrad"})


def group_shape(world_size: int, ranks_per_host: int, size: int, *, contiguous: bool) -> tuple[int, int]:
    """Return the hosts that a sharding group uses, and its ranks on each of them, where both are whole numbers.

    With the ranks of a pod in place of those of a host: the same of pods.
    """
    per_host = min(size, max(1, ranks_per_host if contiguous else ranks_per_host * size // world_size))
    return size // per_host, per_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The ranks that hold the same shards, one of each group, and where they lie."""

    num_ranks: int
    ranks_per_host: int
    pod_size: int | None  # of them in a pod; ``None`` for none
    job: WholeJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaGroups:
    """The sizes that sharding groups may have, and how the groups keep their replicas alike."""

    job: Cluster  # all ranks
    sizes: tuple[int, ...]  # ranks of a sharding group, candidates in increasing order
    sync_interval_steps: int = 1
    include_optimizer_state: bool = True
    use_inter_host_allreduce: bool = False  # groups of contiguous ranks

    def __post_init__(self) -> None:
        expect(bool(self.sizes), "at least one size of sharding groups")
        expect(self.sizes == tuple(sorted(set(self.sizes))), "sizes that increase")
        expect(self.sync_interval_steps >= 1, "sync_interval_steps >= 1")
        for size in self.sizes:
            issue = self.issue_of(self.job, size, contiguous=self.use_inter_host_allreduce)
            expect(issue is None, f"groups that lie alike on hosts: {issue}")

    @staticmethod
    def issue_of(job: Cluster, size: int, *, contiguous: bool) -> str | None:
        """Return why the ranks of a job cannot be divided into groups of a size, with the numbers; ``None``: they can.

        A group has as many ranks on each host that it uses, and in each pod, since ``table_row_wise``,
        ``table_column_wise`` and ``grid_shard`` cut tables over them (``node_group_size``).
        """
        ranks, per_host = job.world_size, job.ranks_per_host
        if size > ranks:
            return f"groups of {size} ranks, and the job has {ranks}"
        if ranks % size:
            return f"{ranks} ranks are not whole groups of {size} ranks"
        apart = size if contiguous else ranks // size
        for where, within in (("on each host", per_host), (f"in each {job.group_noun}", job.ranks_per_group)):
            if apart % within and within % apart:
                if contiguous:
                    return f"a group of {size} contiguous ranks ends inside a {where.split()[-1]} of {within} ranks"
                return (
                    f"a group of {size} ranks takes every {apart}th of {ranks} ranks, which are not as many {where} of"
                    f" {within} ranks"
                )
        return None

    @classmethod
    def sizes_of(cls, job: Cluster, *, contiguous: bool) -> tuple[int, ...]:
        """Return all sizes that a job can be divided into, in increasing order; that of all ranks is one of them."""
        return tuple(
            size
            for size in range(MIN_GROUP_SIZE, job.world_size + 1)
            if cls.issue_of(job, size, contiguous=contiguous) is None
        )

    @property
    def is_decided(self) -> bool:
        """Whether there is one size only."""
        return len(self.sizes) == 1

    def of_size(self, size: int) -> "ReplicaGroups":
        """Return the same with one of the sizes."""
        return replace(self, sizes=(size,))

    def num_groups(self, size: int) -> int:
        """Return the number of groups, which is that of replicas."""
        return self.job.world_size // size

    def stride(self, size: int) -> int:
        """Return how far apart the ranks of a group are."""
        return 1 if self.use_inter_host_allreduce else self.num_groups(size)

    def cluster_of(self, size: int) -> Cluster:
        """Return the ranks of one group as a cluster.

        Where ranks differ, each position has the memory and the speed of the weakest of the ranks that take it.
        """
        stride, job = self.stride(size), self.job
        num_hosts, ranks_per_host = group_shape(
            job.world_size, job.ranks_per_host, size, contiguous=self.use_inter_host_allreduce
        )
        return Cluster(
            hardware=job.hardware,
            num_hosts=num_hosts,
            ranks_per_host=ranks_per_host,
            pod_size=self._in_pod(size, contiguous=self.use_inter_host_allreduce),
            hbm_bytes_by_rank=self._weakest(size, job.hbm_bytes_by_rank),
            relative_speed_by_rank=self._weakest(size, job.relative_speed_by_rank),
            job=self._whole_job(stride),
        )

    def replicas_of(self, size: int) -> Replicas:
        """Return the ranks that hold the same shards: one rank of each group."""
        number = self.num_groups(size)
        stride = size if self.use_inter_host_allreduce else 1
        return Replicas(
            num_ranks=number,
            ranks_per_host=min(number, max(1, self.job.ranks_per_host // stride)),
            pod_size=self._in_pod(number, contiguous=not self.use_inter_host_allreduce),
            job=self._whole_job(stride),
        )

    def ranks_of(self, size: int, group: int) -> Iterator[int]:
        """Yield the ranks of the job that are in a group, in the order of the group's ranks."""
        first = group * size if self.use_inter_host_allreduce else group
        for position in range(size):
            yield first + position * self.stride(size)

    def _whole_job(self, stride: int) -> WholeJob:
        return WholeJob(
            num_ranks=self.job.world_size,
            ranks_per_host=self.job.ranks_per_host,
            stride=stride,
            pod_size=self.job.pod_size,
        )

    def _in_pod(self, size: int, *, contiguous: bool) -> int | None:
        """Return how many of so many ranks, contiguous or evenly apart, are in each pod; ``None`` without pods."""
        pod_size = self.job.pod_size
        return None if pod_size is None else group_shape(self.job.world_size, pod_size, size, contiguous=contiguous)[1]

    def _weakest(self, size: int, by_rank: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if by_rank is None:
            return None
        of_groups = np.array(by_rank)[[list(self.ranks_of(size, group)) for group in range(self.num_groups(size))]]
        return tuple(of_groups.min(axis=0).tolist())
