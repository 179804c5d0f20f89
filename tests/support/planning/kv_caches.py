"""Hosts that serve next to a cache of keys and values, with round numbers, for tests."""

from dataclasses import replace

from planner.domain.problem.kv_cache import KvCache
from planner.domain.problem.problem import Problem

#: 1 kB of a token, 100 tokens of a user: 100 kB of a user.
CACHE = KvCache(
    sizes_bytes=(0.0, 2e6, 4e6, 6e6),
    bytes_per_token=1e3,
    tokens_per_user=100.0,
    hit_rates=((50.0, 0.5), (200.0, 0.8)),
    recompute_seconds=1e-3,
)


def with_kv_cache(problem: Problem, *sizes: float, **changes: object) -> Problem:
    """The same requests, and a cache that may have these sizes."""
    assert problem.serving is not None
    cache = replace(CACHE, **{**({"sizes_bytes": sizes} if sizes else {}), **changes})
    return replace(problem, serving=replace(problem.serving, kv_cache=cache))
