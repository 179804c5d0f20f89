"""What a plan document states of sharding groups that are replicas of each other."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class ReplicaGroupsDocument(TypedDict):
    """Groups of ranks, each of which holds all tables under this plan; all of it is in the digest."""

    world_size: Annotated[int, "Ranks of the job; those of the plan are one group's. Unit: ranks.", Example(128)]
    ranks_per_host: Annotated[int, "Of the job. Unit: ranks.", Example(8)]
    sharding_group_size: Annotated[int, "Ranks of a group. Unit: ranks.", Example(16)]
    num_groups: Annotated[int, "Groups, and copies of the tables.", Example(8)]
    node_group_size: Annotated[
        int, "Ranks of a group in each pod that it uses, or else on each host. Unit: ranks.", Example(1)
    ]
    use_inter_host_allreduce: Annotated[
        bool,
        "Whether the groups are contiguous ranks; else a group takes every n-th rank, of n groups.",
        Example(False),
    ]
    sync_interval_steps: Annotated[int, "Steps from one average to the next. Unit: steps.", Example(1)]
    include_optimizer_state: Annotated[bool, "Whether optimizer state is averaged with the weights.", Example(True)]


class GroupSizeDocument(TypedDict):
    """A size of sharding groups that was considered."""

    sharding_group_size: Annotated[int, "Unit: ranks.", Example(16)]
    num_groups: Annotated[int, "Groups, and copies of the tables.", Example(8)]
    state: Annotated[
        str,
        "planned; ruled_out: no plan of this size is better than the best one; infeasible: there is none; or"
        " not_searched: the time was over.",
        Example("planned"),
    ]
    objective_seconds: Annotated[float | None, "Of its best plan; null if none was searched for. Unit: seconds."]
    lower_bound_seconds: Annotated[float, "No plan of this size is better; 0 where nothing is known. Unit: seconds."]
    sync_seconds_per_step: Annotated[float | None, "In its best plan. Unit: seconds."]
    detail: Annotated[str, "Why it has no plan."]


class ReplicaSyncDocument(TypedDict):
    """What keeping the groups alike takes, and how other sizes compare."""

    bytes: Annotated[int, "Averaged each time by the rank that averages most. Unit: bytes."]
    seconds: Annotated[float, "Of each average, on the slowest rank. Unit: seconds."]
    seconds_per_step: Annotated[float, "The same per step, in the phase replica_sync. Unit: seconds."]
    sizes: Annotated[
        list[GroupSizeDocument], "Every size that was considered; empty where the spec states one, and of scores."
    ]
