"""More ranks of the same kind: whole hosts (or pods), or further ranks of the only host."""

import math
from collections.abc import Sequence
from dataclasses import replace

from cost_models.text.number_text import counted
from cost_models.vocabulary import Holders, Scheme
from planner.diagnosis.fixes.ladder import SLACK, Ladder, Step
from planner.domain.plan.diagnosis import SpecChange
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.cluster import MAX_RANKS, Cluster
from planner.domain.problem.problem import Problem

_MOST_TIMES = 16  # as many hosts as there are
#: Pins of these list every rank, so that they mean another cluster if it has more ranks.
_ON_ALL_RANKS = tuple(scheme for scheme in Scheme if scheme.facts.holders is Holders.WORLD)
_ON_A_HOST = tuple(scheme for scheme in Scheme if scheme.facts.holders is Holders.HOST)


def hosts_ladder(problem: Problem, shortfalls: Sequence[Shortfall]) -> Ladder | None:
    """Add hosts, or whole pods, that are like the last one.

    ``None`` where the cluster is pinned or as large as it may be.
    """
    cluster = problem.cluster
    most = min(MAX_RANKS // cluster.ranks_per_group, _MOST_TIMES * cluster.num_groups) - cluster.num_groups
    if problem.serving is not None or cluster.job is not None:  # requests stay on one host, and groups have a size
        return None
    if most < 1 or _pins(problem, _ON_ALL_RANKS):
        return None
    return _ladder(problem, shortfalls, "host", most, "at the same batch per rank")


def ranks_ladder(problem: Problem, shortfalls: Sequence[Shortfall]) -> Ladder | None:
    """Use more of the ranks that the only host has; ``None`` where there are several or no more ranks."""
    cluster = problem.cluster
    most = cluster.hardware.ranks_per_host - cluster.ranks_per_host
    if (
        cluster.num_hosts > 1
        or cluster.pod_size is not None
        or cluster.job is not None
        or most < 1
        or _pins(problem, (*_ON_ALL_RANKS, *_ON_A_HOST))
    ):
        return None
    if any(table.constraints.hosts is not None for table in problem.tables):
        return None  # another cut of the host is another constraint
    load = "at the same batch per rank" if problem.serving is None else "for the same request"
    return _ladder(problem, shortfalls, "rank", most, load)


def _ladder(problem: Problem, shortfalls: Sequence[Shortfall], noun: str, most: int, load: str) -> Ladder:
    """Add hosts (or pods), or ranks of the only host, up to ``most``; ``load`` is what stays the same, in words."""
    cluster, field = problem.cluster, "num_hosts" if noun == "host" else "ranks_per_host"
    have = int(getattr(cluster, field))
    each = cluster.ranks_per_group // cluster.ranks_per_host if noun == "host" else 1  # hosts of a pod, at least one

    def step(number: int) -> Step:
        count = have + number * each
        larger = _larger(cluster, count, cluster.ranks_per_host) if noun == "host" else _larger(cluster, 1, count)
        return Step(
            problem=replace(problem, cluster=larger),
            message=f"{counted(number * each, noun)} more, {count} in all, {load}",
            changes=(SpecChange(pointer=f"/hardware/{field}", value=count), *_list_changes(larger)),
        )

    guess, failing = _steps(cluster, have // each, shortfalls)
    return Ladder(kind="ranks", num_steps=most, step=step, guess=guess, failing=min(failing, most - 1))


def _steps(cluster: Cluster, have: int, shortfalls: Sequence[Shortfall]) -> tuple[int, int]:
    """How many more are likely to help where there are ``have``, and how many are known not to."""
    guess = math.ceil(have * times * SLACK) - have if (times := _times(shortfalls)) > 1 else 0
    # Tables need no less on more ranks, and equal ranks have as much each; of further tiers a shortfall
    # says only what the ones before them leave.
    of_device = [shortfall for shortfall in shortfalls if shortfall.resource == cluster.device_tier.label]
    failing = 0 if cluster.hbm_bytes_by_rank is not None else math.ceil(have * _times(of_device)) - have - 1
    return guess, max(0, failing)


def _times(shortfalls: Sequence[Shortfall]) -> float:
    """How many times the memory of all ranks is needed, as far as that is known."""
    times = (s.required_bytes / s.available_bytes for s in shortfalls if s.scope == "cluster" and s.available_bytes > 0)
    return max([1.0, *times])


def _larger(cluster: Cluster, num_hosts: int, ranks_per_host: int) -> Cluster:
    """Return a cluster whose new ranks are like the last ones."""
    size = num_hosts * ranks_per_host

    def extended(numbers: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if numbers is None:
            return None
        new = size - len(numbers)
        last = numbers[-cluster.ranks_per_group :] if num_hosts > cluster.num_hosts else numbers[-1:]
        return numbers + (last * new)[:new]

    return replace(
        cluster,
        num_hosts=num_hosts,
        ranks_per_host=ranks_per_host,
        hbm_bytes_by_rank=extended(cluster.hbm_bytes_by_rank),
        relative_speed_by_rank=extended(cluster.relative_speed_by_rank),
    )


def _list_changes(larger: Cluster) -> tuple[SpecChange, ...]:
    """What must be longer in the spec, too."""
    return tuple(
        SpecChange(
            pointer=f"/hardware/overrides/{name}",
            value=tuple(int(one) if float(one).is_integer() else one for one in numbers),  # bytes have no decimal point
        )
        for name in ("hbm_bytes_by_rank", "relative_speed_by_rank")
        if (numbers := getattr(larger, name)) is not None
    )


def _pins(problem: Problem, schemes: tuple[Scheme, ...]) -> bool:
    pinned = (table.constraints.pinned for table in problem.tables)
    return any(pin is not None and pin.sharding_type in schemes for pin in pinned)
