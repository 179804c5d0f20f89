"""Plans for sharding groups (2D parallelism): what the plan says of the groups, and whether the job has them."""

from collections.abc import Sequence
from dataclasses import replace

from .job import RankFacts
from .plan_types import PlanDocument, ReplicaGroupsDocument
from .verdicts import Difference, refuse, replan


def groups_of(document: PlanDocument) -> ReplicaGroupsDocument | None:
    """Return how a plan divides the ranks of the job; ``None`` if it says nothing of groups."""
    return document.get("replica_groups")


def dmp_collection_arguments(document: PlanDocument) -> dict[str, object]:
    """Return what ``DMPCollection`` gets of a plan, besides module, device, plan and process group.

    Empty where the plan has one group of all ranks: that is a job of ``DistributedModelParallel``.
    """
    groups = groups_of(document)
    if groups is None or groups["num_groups"] == 1:
        return {}
    return {
        "world_size": groups["world_size"],
        "sharding_group_size": groups["sharding_group_size"],
        "node_group_size": groups["node_group_size"],
        "use_inter_host_allreduce": groups["use_inter_host_allreduce"],
    }


def as_planned(facts: RankFacts, document: PlanDocument) -> RankFacts:
    """Return the facts of a rank with the groups of the plan, where its launcher states none."""
    groups = groups_of(document)
    if groups is None:
        return facts
    if facts.states_ranks_per_host and groups["num_groups"] > 1 and facts.ranks_per_host == groups["node_group_size"]:
        facts = replace(
            facts, ranks_per_host=document["ranks_per_host"]
        )  # node_group_size is of a pod, if there are any
    if facts.states_groups:
        return facts
    return replace(
        facts,
        sharding_group_size=groups["sharding_group_size"],
        contiguous_groups=groups["use_inter_host_allreduce"],
        ranks_per_host=facts.ranks_per_host if facts.states_ranks_per_host else document["ranks_per_host"],
    )


def group_differences(document: PlanDocument, facts: Sequence[RankFacts]) -> list[Difference]:
    """Return where the groups of a plan are not those of the job; the size of a group is compared with the plan's."""
    groups = groups_of(document)
    if groups is None:
        return []
    first, found = facts[0], []
    if groups["world_size"] != len(facts):
        found.append(
            replan(
                f"the plan is for {groups['num_groups']} sharding groups of {groups['sharding_group_size']} ranks,"
                f" {groups['world_size']} in all, the job has {len(facts)}"
            )
        )
    if first.local_world_size not in (None, groups["ranks_per_host"]):
        found.append(
            replan(
                f"the plan is for hosts of {groups['ranks_per_host']} ranks, the job has {first.local_world_size} per"
                " host (LOCAL_WORLD_SIZE)"
            )
        )
    if groups["num_groups"] > 1 and first.contiguous_groups != groups["use_inter_host_allreduce"]:
        found.append(
            refuse(
                f"the plan is for use_inter_host_allreduce {groups['use_inter_host_allreduce']}, the job has"
                f" {first.contiguous_groups}"
            )
        )
    return found
