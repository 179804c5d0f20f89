"""Sharding groups under a plan: how they lie, what keeps them alike, and how other sizes compare."""

from dataclasses import dataclass
from typing import Literal

#: What became of a size: a plan of it was searched for; a bound showed that it cannot win; it has no plan; or the time
#: was over before it was looked at.
SizeState = Literal["planned", "ruled_out", "infeasible", "not_searched"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLoad:
    """The groups of a plan, of which each holds all tables once, and the averages that keep them alike."""

    world_size: int  # ranks of the job
    ranks_per_host: int  # of the job
    sharding_group_size: int  # ranks of a group
    num_groups: int
    node_group_size: int  # ranks of a group in each pod that it uses, or else on each host
    use_inter_host_allreduce: bool  # whether groups are contiguous ranks
    sync_interval_steps: int
    include_optimizer_state: bool
    bytes: float  # of the rank that averages most, each time
    seconds: float  # of the slowest rank, each time
    seconds_per_step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """One size that was considered, with its plan and its bound as far as they are known."""

    sharding_group_size: int
    num_groups: int
    state: SizeState
    objective_seconds: float | None  # of its best plan; None where none was searched for or found
    lower_bound_seconds: float  # of all its plans
    sync_seconds_per_step: float | None  # of its best plan
    detail: str = ""  # why it has no plan
