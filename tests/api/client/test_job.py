"""Whether the ranks of a job agree, and whether the plan's groups of ranks are those that run."""

import pytest

from api.client.job import expected_differences, job_issues, plan_ranks, pod_differences
from api.client.verdicts import verdict_of
from tests.support.client.jobs import memory, rank_facts, tiny_model
from tests.support.client.plans import tiny_plan


def reasons(facts: list, plan: dict | None = None) -> list[str]:
    """What all ranks together say against the plan."""
    return [difference.text for difference in job_issues(plan or tiny_plan(), facts, tiny_model())[0]]


def test_a_job_that_is_as_planned() -> None:
    assert job_issues(tiny_plan(), [rank_facts(0), rank_facts(1)], tiny_model()) == ([], [])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("group_size", 3, "rank 1: the world size is 3, on rank 0 it is 2"),
        ("sharding_group_size", 1, "rank 1: sharding_group_size is 1, on rank 0 it is 2"),
        ("contiguous_groups", True, "rank 1: use_inter_host_allreduce is True, on rank 0 it is False"),
        ("ranks_per_host", 1, "rank 1: the number of ranks per host (LOCAL_WORLD_SIZE) is 1, on rank 0 it is 2"),
        (
            "pod_ranks",
            2,
            "rank 1: the number of ranks of a pod (TORCHREC_RESOLVED_POD_SIZE) is 2, on rank 0 it is None",
        ),
        ("device", "cpu", "rank 1: the device is cpu, on rank 0 it is cuda"),
        ("torchrec", "1.7.0", "rank 1: the version of TorchRec is 1.7.0, on rank 0 it is 1.8.0"),
        ("expected_digest", "sha256:2", "rank 1: the expected digest is sha256:2, on rank 0 it is None"),
    ],
)
def test_ranks_that_disagree(field: str, value: object, message: str) -> None:
    facts = [rank_facts(0), rank_facts(1, **{field: value})]
    found, _ = job_issues(tiny_plan(), facts, tiny_model())
    assert [difference.text for difference in found] == [message]
    assert verdict_of(found) == "refuse"


def test_ranks_that_disagree_alike_share_a_message() -> None:
    facts = [rank_facts(0), *(rank_facts(rank, device="cpu") for rank in (1, 2, 3)), rank_facts(4, device="mtia")]
    assert reasons(facts) == [
        "ranks 1..3: the device is cpu, on rank 0 it is cuda",
        "rank 4: the device is mtia, on rank 0 it is cuda",
    ]


def test_one_host_on_two_machines() -> None:
    facts = [rank_facts(0), rank_facts(1, machine="boot 2", host_name="node-2")]
    assert reasons(facts) == [
        "ranks 0, 1 are one host by LOCAL_WORLD_SIZE, but rank 0 runs on node-1 and rank 1 on node-2;"
        " number the ranks machine by machine"
    ]


def test_two_hosts_on_one_machine_are_no_harm() -> None:
    facts = [rank_facts(rank, ranks_per_host=1) for rank in range(2)]
    assert reasons(facts) == []


def test_a_pod_of_several_hosts_that_the_plan_does_not_have() -> None:
    (found,) = pod_differences(tiny_plan(), 2, 4)
    assert found.verdict == "refuse"
    assert found.text == (
        "TORCHREC_RESOLVED_POD_SIZE makes TorchRec use groups of 4 ranks, the job has 2 per host (LOCAL_WORLD_SIZE),"
        " and the plan is for groups of a host; unset it, or plan with hardware.pod_size 4"
    )
    assert pod_differences(tiny_plan(), 2, 2) == pod_differences(tiny_plan(), 2, None) == []
    assert reasons([rank_facts(rank, pod_ranks=4) for rank in range(2)]) == [found.text]


@pytest.mark.parametrize(("pod_ranks", "found"), [(None, 2), (8, 8)])
def test_a_plan_for_pods_that_the_job_does_not_have(pod_ranks: int | None, found: int) -> None:
    (difference,) = pod_differences(tiny_plan() | {"pod_size": 4}, 2, pod_ranks)
    assert difference.verdict == "refuse"
    assert difference.text == (
        f"the plan is for pods of 4 ranks, TorchRec uses groups of {found}; set TORCHREC_RESOLVED_POD_SIZE=2 on every"
        " rank (2 hosts of 2 ranks)"
    )


def test_a_job_in_pods_as_planned() -> None:
    plan = tiny_plan() | {"ranks_per_host": 1, "pod_size": 2}
    facts = [rank_facts(rank, ranks_per_host=1, pod_ranks=2) for rank in range(2)]
    assert reasons(facts, plan) == []
    assert pod_differences(plan | {"pod_size": 1}, 1, None) == []  # each host is a pod: nothing to set


def test_pods_under_2d_parallelism() -> None:
    """TorchRec 1.8 forms the groups of a sharding group from hosts."""
    plan = tiny_plan() | {"ranks_per_host": 1, "pod_size": 2}
    facts = [rank_facts(rank, group_size=4, ranks_per_host=1, pod_ranks=2) for rank in range(4)]
    assert reasons(facts, plan) == [
        "the plan is for pods of 2 ranks, and under 2D parallelism TorchRec uses groups of a host; plan for them"
        " with hardware.replica_groups, or train without sharding groups"
    ]


def test_surplus_shards_under_2d() -> None:
    plan = tiny_plan()
    plan["world_size"] = 4
    plan["tables"][0]["shards"][0]["rank"] = 2
    facts = [rank_facts(rank, group_size=4) for rank in range(4)]
    found, _ = job_issues(plan, facts, tiny_model())
    assert [(difference.text, difference.verdict) for difference in found] == [
        (
            "ranks 2, 3 of the plan have no place in sharding groups of 2 ranks, so that their shards of"
            ' "whole" would be left out; plan for 2 ranks',
            "replan",
        )
    ]


def test_sharding_groups_must_divide_the_ranks() -> None:
    facts = [rank_facts(rank, group_size=3) for rank in range(3)]
    assert reasons(facts) == ["3 ranks are not whole sharding groups of 2 ranks"]


def test_ranks_of_sharding_groups() -> None:
    strided = [rank_facts(rank, group_size=6, sharding_group_size=3) for rank in range(6)]
    contiguous = [rank_facts(rank, sharding_group_size=3, contiguous_groups=True) for rank in range(6)]
    assert plan_ranks(strided) == [0, 0, 1, 1, 2, 2]  # groups 0, 2, 4 and 1, 3, 5
    assert plan_ranks(contiguous) == [0, 1, 2, 0, 1, 2]
    assert plan_ranks([rank_facts(rank) for rank in range(2)]) == [0, 1]


def test_memory_is_compared_once_the_ranks_agree() -> None:
    full = memory(1, device_free_bytes=10)
    (reason,) = reasons([rank_facts(0), rank_facts(1, memory=full)])
    assert reason.startswith("rank 1: the plan needs ")
    (reason,) = reasons([rank_facts(0), rank_facts(1, memory=full, device="cpu")])
    assert reason.startswith("rank 1: the device ")
    assert job_issues(None, [rank_facts(0), rank_facts(1, memory=full)], tiny_model()) == ([], [])
    other_world = tiny_plan() | {"world_size": 3}
    assert reasons([rank_facts(0), rank_facts(1, memory=full)], other_world) == []  # each rank says so itself


def test_the_plan_that_the_job_was_started_for() -> None:
    assert expected_differences(None, "sha256:1") == expected_differences("sha256:1", "sha256:1") == []
    (found,) = expected_differences("sha256:2", "sha256:1")
    assert found.verdict == "refuse"
    assert found.text == "the plan's content has the digest sha256:1, the job expects sha256:2"
