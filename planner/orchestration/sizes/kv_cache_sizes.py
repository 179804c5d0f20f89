"""The sizes that a cache of keys and values may have: what it takes of a rank, tables lack."""

from collections.abc import Sequence
from dataclasses import replace

from planner.domain.plan.kv_cache import KvCacheSize
from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.orchestration.sizes.candidates import Candidate
from planner.orchestration.sizes.plan_sizes import Sizes


def kv_cache_sizes(problem: Problem) -> Sizes:
    """Return the sizes of a problem whose cache may have several.

    Tables that fit next to a cache fit next to a smaller one, and their shards take as long there. So what no placement
    next to a small cache can undercut, none next to a larger one can.
    """
    assert problem.kv_cache is not None
    return Sizes(
        noun="sizes of the cache of keys and values",
        problems={size: problem.of_kv_cache_size(size) for size in reversed(problem.kv_cache.sizes_bytes)},
        is_nested=True,
        noted=_noted,
    )


def _noted(plan: Plan, candidates: Sequence[Candidate]) -> Plan:
    return replace(plan, kv_cache_sizes=tuple(map(_as_considered, reversed(candidates))))


def _as_considered(one: Candidate) -> KvCacheSize:
    cache, num_ranks = one.problem.kv_cache, one.problem.world_size
    assert cache is not None
    return KvCacheSize(
        bytes=one.size,
        hit_rate=cache.hit_rate(num_ranks),
        seconds_per_request=cache.seconds_per_request(num_ranks),
        state=one.state,
        objective_seconds=None if one.plan is None else one.plan.evaluation.objective_seconds,
        lower_bound_seconds=one.known_bound_seconds,
        detail=one.detail,
    )
