"""Hosts joined into pods, for tables that may be cut by rows over near ranks alone and that no host holds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cost_models.arrays import Bools
from cost_models.text.number_text import counted
from cost_models.vocabulary import Holders, Scheme
from planner.diagnosis.fixes.ladder import Ladder, Step
from planner.domain.plan.diagnosis import SpecChange
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.enumerate import table_rank_allowed
from planner.options.runtimes.registry import RUNTIMES

_OVER_GROUPS = frozenset(scheme for scheme in Scheme if scheme.facts.holders is Holders.HOST)


def pods_ladder(problem: Problem) -> Ladder | None:
    """Join more and more hosts that share an NVLink domain; ``None`` where no table gains by it, or none can be joined.

    A table that may be cut by rows over all ranks gains nothing: it has smaller blocks there.
    """
    tables = [index for index, table in enumerate(problem.tables) if _is_bound_to_groups(table)]
    sizes = _sizes(problem, tables) if tables else []
    if not sizes:
        return None

    def step(number: int) -> Step:
        size = sizes[number - 1]
        hosts = counted(size // problem.cluster.ranks_per_host, "host")
        return Step(
            problem=replace(problem, cluster=replace(problem.cluster, pod_size=size)),
            message=f"join {hosts} into a pod of {size} ranks",
            changes=(SpecChange(pointer="/hardware/pod_size", value=size),),
        )

    return Ladder(kind="pods", num_steps=len(sizes), step=step)


def _is_bound_to_groups(table: Table) -> bool:
    """Whether the user allows cuts by rows over near ranks, and none over all ranks."""
    allowed = table.constraints.sharding_types
    if allowed is None or Scheme.ROW_WISE in allowed:
        return False
    return not _OVER_GROUPS.isdisjoint(allowed)


def _sizes(problem: Problem, tables: Sequence[int]) -> list[int]:
    """Return the ranks of the pods that the cluster can have, and of which each table may have a whole one."""
    cluster = problem.cluster
    is_pinned = any(table.constraints.pinned is not None for table in problem.tables)  # to shards of other groups
    if cluster.pod_size is not None or is_pinned or not RUNTIMES[problem.runtime].has_pods:
        return []
    allowed: Bools = table_rank_allowed(problem)[list(tables)]
    most = min(cluster.num_hosts, cluster.hardware.domain_ranks // cluster.ranks_per_host)
    numbers = (hosts for hosts in range(2, most + 1) if cluster.num_hosts % hosts == 0)
    return [hosts * cluster.ranks_per_host for hosts in numbers if _have_a_pod(allowed, cluster.num_hosts // hosts)]


def _have_a_pod(allowed: Bools, num_pods: int) -> bool:
    """Whether each table, shape (tables, ranks), may use all ranks of some pod."""
    by_pod = allowed.reshape(len(allowed), num_pods, -1)
    return bool(np.all(np.any(np.all(by_pod, axis=2), axis=1)))
