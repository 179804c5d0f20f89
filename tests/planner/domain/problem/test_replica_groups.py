"""Sharding groups by hand: which ranks they have, where these lie, and which sizes a job can have."""

from dataclasses import replace

import pytest

from cost_models.collectives.whole_job import WholeJob
from planner.domain.problem.replica_groups import ReplicaGroups, Replicas
from tests.support.planning.builders import make_cluster, make_problem

JOB = make_cluster(num_hosts=4, ranks_per_host=4)  # 16 ranks


def groups(*sizes: int, contiguous: bool = False, job: object = JOB) -> ReplicaGroups:
    return ReplicaGroups(job=job, sizes=sizes, use_inter_host_allreduce=contiguous)


def test_groups_take_every_nth_rank() -> None:
    """As in the docstring of DMPCollection: 2 hosts of 4, groups of 4 take every second rank."""
    found = groups(4, job=make_cluster(num_hosts=2, ranks_per_host=4))
    assert [list(found.ranks_of(4, group)) for group in range(2)] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    cluster = found.cluster_of(4)
    assert (cluster.num_hosts, cluster.ranks_per_host, cluster.job_ranks) == (2, 2, 8)
    job = WholeJob(num_ranks=8, ranks_per_host=4, stride=1)
    assert found.replicas_of(4) == Replicas(num_ranks=2, ranks_per_host=2, pod_size=None, job=job)


def test_contiguous_groups_are_whole_hosts() -> None:
    found = groups(8, contiguous=True)
    assert [list(found.ranks_of(8, group)) for group in range(2)] == [list(range(8)), list(range(8, 16))]
    cluster = found.cluster_of(8)
    assert (cluster.num_hosts, cluster.ranks_per_host) == (2, 4)
    job = WholeJob(num_ranks=16, ranks_per_host=4, stride=8)
    assert found.replicas_of(8) == Replicas(num_ranks=2, ranks_per_host=1, pod_size=None, job=job)


@pytest.mark.parametrize(
    ("size", "contiguous", "shape", "replicas"),
    [
        (2, False, (2, 1), (8, 4)),  # every 8th rank is on every second host; 8 neighbours are two hosts
        (4, False, (4, 1), (4, 4)),
        (8, False, (4, 2), (2, 2)),
        (16, False, (4, 4), (1, 1)),
        (2, True, (1, 2), (8, 2)),  # two groups share a host, so that 2 ranks of a host have the same shards
        (4, True, (1, 4), (4, 1)),
        (16, True, (4, 4), (1, 1)),
    ],
)
def test_where_groups_and_replicas_lie(
    size: int, contiguous: bool, shape: tuple[int, int], replicas: tuple[int, int]
) -> None:
    found = groups(size, contiguous=contiguous)
    cluster = found.cluster_of(size)
    assert (cluster.num_hosts, cluster.ranks_per_host) == shape
    held = found.replicas_of(size)
    assert (held.num_ranks, held.ranks_per_host, held.pod_size) == (*replicas, None)
    hosts = [[rank // 4 for rank in found.ranks_of(size, group)] for group in range(16 // size)]
    for ranks in hosts:  # counted: as many ranks on each host that the group uses
        assert len(set(ranks)) == shape[0]
        assert {ranks.count(host) for host in ranks} == {shape[1]}


@pytest.mark.parametrize(
    ("size", "contiguous", "issue"),
    [
        (32, False, "groups of 32 ranks, and the job has 24"),
        (5, False, "24 ranks are not whole groups of 5 ranks"),
        (4, False, "every 6th of 24 ranks, which are not as many on each host of 4 ranks"),
        (6, True, "a group of 6 contiguous ranks ends inside a host of 4 ranks"),
    ],
)
def test_sizes_that_do_not_fit(size: int, contiguous: bool, issue: str) -> None:
    job = make_cluster(num_hosts=6, ranks_per_host=4)
    found = ReplicaGroups.issue_of(job, size, contiguous=contiguous)
    assert found is not None
    assert found.endswith(issue)
    with pytest.raises(ValueError, match="Expected groups that lie alike on hosts"):
        groups(size, contiguous=contiguous, job=job)


@pytest.mark.parametrize(
    ("size", "contiguous", "pods", "replicas"),
    [
        (2, False, (2, 1), (8, 8)),  # every 8th rank: one in each pod, and 8 neighbours are a pod
        (4, False, (2, 2), (4, 4)),
        (8, False, (2, 4), (2, 2)),
        (16, False, (2, 8), (1, 1)),
        (2, True, (1, 2), (8, 4)),  # a pod has four of the groups
        (4, True, (1, 4), (4, 2)),
        (8, True, (1, 8), (2, 1)),
        (16, True, (2, 8), (1, 1)),
    ],
)
def test_where_groups_lie_in_pods(
    size: int, contiguous: bool, pods: tuple[int, int], replicas: tuple[int, int]
) -> None:
    """Pods of two hosts of four ranks."""
    job = replace(JOB, pod_size=8)
    found = groups(size, contiguous=contiguous, job=job)
    cluster, held = found.cluster_of(size), found.replicas_of(size)
    assert (cluster.num_groups, cluster.ranks_per_group) == pods
    assert (held.num_ranks, held.pod_size) == replicas
    for group in range(16 // size):  # counted
        where = [rank // 8 for rank in found.ranks_of(size, group)]
        assert len(set(where)) == pods[0]
        assert {where.count(pod) for pod in where} == {pods[1]}
    alike = [next(iter(found.ranks_of(size, group))) // 8 for group in range(16 // size)]
    assert {alike.count(pod) for pod in alike} == {replicas[1]}
    assert cluster.job == WholeJob(num_ranks=16, ranks_per_host=4, pod_size=8, stride=found.stride(size))


def test_groups_that_cut_a_pod() -> None:
    job = replace(make_cluster(num_hosts=6, ranks_per_host=4), pod_size=8)
    found = ReplicaGroups.issue_of(job, 12, contiguous=True)
    assert found == "a group of 12 contiguous ranks ends inside a pod of 8 ranks"
    found = ReplicaGroups.issue_of(job, 2, contiguous=False)
    assert found == "a group of 2 ranks takes every 12th of 24 ranks, which are not as many in each pod of 8 ranks"
    assert ReplicaGroups.issue_of(replace(job, pod_size=None), 2, contiguous=False) is None
    assert ReplicaGroups.sizes_of(job, contiguous=True) == (2, 4, 8, 24)


def test_all_sizes_of_a_job() -> None:
    assert ReplicaGroups.sizes_of(JOB, contiguous=False) == (2, 4, 8, 16)
    job = make_cluster(num_hosts=6, ranks_per_host=4)
    assert ReplicaGroups.sizes_of(job, contiguous=True) == (2, 4, 8, 12, 24)
    assert ReplicaGroups.sizes_of(job, contiguous=False) == (2, 3, 6, 12, 24)
    assert ReplicaGroups.sizes_of(make_cluster(num_hosts=1, ranks_per_host=1), contiguous=False) == ()


def test_a_position_has_what_the_weakest_of_its_ranks_has() -> None:
    job = replace(
        make_cluster(num_hosts=1, ranks_per_host=4),
        hbm_bytes_by_rank=(8e9, 4e9, 6e9, 7e9),
        relative_speed_by_rank=(1.0, 0.5, 0.25, 1.0),
    )
    strided = groups(2, job=job).cluster_of(2)  # 0 and 1 are alike, 2 and 3
    assert (strided.hbm_bytes_by_rank, strided.relative_speed_by_rank) == ((4e9, 6e9), (0.5, 0.25))
    contiguous = groups(2, job=job, contiguous=True).cluster_of(2)  # 0 and 2, 1 and 3
    assert contiguous.hbm_bytes_by_rank == (6e9, 4e9)


def test_a_problem_of_several_sizes_becomes_that_of_a_group() -> None:
    problem = make_problem(cluster=JOB, replica_groups=groups(4, 16))
    assert [one.world_size for one in problem.of_each_group()] == [4, 16]
    assert [one.is_replicated for one in problem.of_each_group()] == [True, False]
    assert problem.of_group(4).all_ranks == problem.all_ranks == JOB
    assert problem.of_plan(4, use_index_dedup=False).world_size == 4
    assert problem.of_plan(5, use_index_dedup=False).world_size == 16  # which a check of the plan then reports
    assert problem.of_group(4).of_plan(16, use_index_dedup=False).world_size == 4
    with pytest.raises(ValueError, match="Expected a cluster of 4 ranks"):
        make_problem(cluster=JOB, replica_groups=groups(4))
