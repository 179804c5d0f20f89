"""Plans for sharding groups as a launcher reads them: what the job must be, and what ``DMPCollection`` gets."""

import pytest

from api.client import plan_digest
from api.client.job import plan_ranks, pod_differences
from api.client.replica_groups import as_planned, dmp_collection_arguments, group_differences, groups_of
from tests.support.client.jobs import rank_facts
from tests.support.client.plans import tiny_plan

GROUPS = {
    "world_size": 4,
    "ranks_per_host": 4,
    "sharding_group_size": 2,
    "num_groups": 2,
    "node_group_size": 2,
    "use_inter_host_allreduce": False,
    "sync_interval_steps": 10,
    "include_optimizer_state": True,
}


def grouped(**changes: object) -> dict[str, object]:
    """The tiny plan for a job of four ranks on a host, in two groups."""
    plan = {**tiny_plan(), "replica_groups": {**GROUPS, **changes}}
    return {**plan, "plan_digest": plan_digest(plan)}


def facts_of(size: int = 4, **changes: object) -> list[object]:
    """Ranks that state no groups."""
    usual = {"group_size": size, "sharding_group_size": size, "ranks_per_host": 4, "local_world_size": 4}
    stated = {"states_groups": False, "states_ranks_per_host": False}
    return [rank_facts(rank, **{**usual, **stated, **changes}) for rank in range(size)]


def texts(plan: dict[str, object], facts: list[object]) -> list[tuple[str, str]]:
    return [(one.verdict, one.text) for one in group_differences(plan, [as_planned(fact, plan) for fact in facts])]


@pytest.mark.parametrize("field", list(GROUPS))
def test_the_digest_covers_the_groups(field: str) -> None:
    value = GROUPS[field]
    other = not value if isinstance(value, bool) else value + 1
    assert plan_digest(grouped()) != plan_digest(grouped(**{field: other}))
    assert plan_digest(grouped()) != plan_digest(tiny_plan())


def test_a_launcher_leaves_the_groups_to_the_plan() -> None:
    plan = grouped()
    facts = [as_planned(fact, plan) for fact in facts_of()]
    assert {(one.sharding_group_size, one.contiguous_groups, one.ranks_per_host) for one in facts} == {(2, False, 2)}
    assert texts(plan, facts_of()) == []
    assert plan_ranks(facts) == [0, 0, 1, 1]  # every second rank is one group
    contiguous = grouped(use_inter_host_allreduce=True)
    assert plan_ranks([as_planned(fact, contiguous) for fact in facts_of()]) == [0, 1, 0, 1]


def test_what_a_launcher_states_stays() -> None:
    plan, stated = grouped(), facts_of(states_groups=True, sharding_group_size=4)
    assert [as_planned(fact, plan) for fact in stated] == stated
    assert as_planned(facts_of(states_ranks_per_host=True, ranks_per_host=1)[0], plan).ranks_per_host == 1
    assert as_planned(facts_of()[0], tiny_plan()) == facts_of()[0]


def test_groups_in_pods() -> None:
    """Two of four hosts of one rank in each pod: TorchRec cuts over what it gets as node_group_size."""
    plan = grouped(ranks_per_host=1, sharding_group_size=4, node_group_size=2, world_size=8)
    plan |= {"world_size": 4, "ranks_per_host": 1, "pod_size": 2}
    facts = as_planned(facts_of(8, ranks_per_host=1, local_world_size=1)[0], plan)
    assert (facts.sharding_group_size, facts.ranks_per_host) == (4, 1)
    stated = facts_of(8, ranks_per_host=2, states_ranks_per_host=True)[0]
    assert as_planned(stated, plan).ranks_per_host == 1
    other = facts_of(8, ranks_per_host=4, states_ranks_per_host=True)[0]
    assert as_planned(other, plan).ranks_per_host == 4
    assert dmp_collection_arguments(plan)["node_group_size"] == 2
    for pod_ranks in (None, 2, 8):  # which no sharding group reads
        assert pod_differences(plan, 1, pod_ranks, uses_2d=True) == []
    assert pod_differences(plan, 1, None) != []


def test_a_plan_for_another_job() -> None:
    assert texts(grouped(), facts_of(size=6)) == [
        ("replan", "the plan is for 2 sharding groups of 2 ranks, 4 in all, the job has 6")
    ]
    assert texts(grouped(), facts_of(local_world_size=2)) == [
        ("replan", "the plan is for hosts of 4 ranks, the job has 2 per host (LOCAL_WORLD_SIZE)")
    ]
    odd = facts_of(states_groups=True, sharding_group_size=2, contiguous_groups=True)
    assert texts(grouped(), odd) == [("refuse", "the plan is for use_inter_host_allreduce False, the job has True")]
    assert texts(tiny_plan(), facts_of(size=6)) == []


def test_arguments_of_dmp_collection() -> None:
    assert dmp_collection_arguments(grouped()) == {
        "world_size": 4,
        "sharding_group_size": 2,
        "node_group_size": 2,
        "use_inter_host_allreduce": False,
    }
    assert dmp_collection_arguments(grouped(num_groups=1)) == {}
    assert (dmp_collection_arguments(tiny_plan()), groups_of(tiny_plan())) == ({}, None)
