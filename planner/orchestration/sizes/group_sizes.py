"""The sizes that sharding groups may have."""

from collections.abc import Sequence
from dataclasses import replace

from planner.domain.plan.plan import Plan
from planner.domain.plan.replicas import GroupSize
from planner.domain.problem.problem import Problem
from planner.orchestration.sizes.candidates import Candidate
from planner.orchestration.sizes.plan_sizes import Sizes


def group_sizes(problem: Problem) -> Sizes:
    """Return the sizes of a problem whose sharding groups may have several: a large group has more memory."""
    assert problem.replica_groups is not None
    return Sizes(
        noun="sizes of sharding groups",
        problems={size: problem.of_group(size) for size in problem.replica_groups.sizes},
        is_nested=False,
        noted=_noted,
    )


def _noted(plan: Plan, candidates: Sequence[Candidate]) -> Plan:
    return replace(plan, group_sizes=tuple(map(_as_considered, candidates)))


def _as_considered(one: Candidate) -> GroupSize:
    groups = one.problem.replica_groups
    assert groups is not None
    load = None if one.plan is None else one.plan.evaluation.replica_groups
    return GroupSize(
        sharding_group_size=int(one.size),
        num_groups=groups.num_groups(int(one.size)),
        state=one.state,
        objective_seconds=None if one.plan is None else one.plan.evaluation.objective_seconds,
        lower_bound_seconds=one.known_bound_seconds,
        sync_seconds_per_step=None if load is None else load.seconds_per_step,
        detail=one.detail,
    )
