"""Rules of a cache of keys and values: what it holds is known once, its points and sizes grow, and every size fits."""

from api.schemas.kv_cache import KvCacheSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from planner.domain.formats.units import format_bytes
from planner.pricing.memory.ledger import reserved_bytes

_BASE = "/serving/kv_cache"


def check_kv_cache(state: SpecState, issues: IssueCollector) -> None:
    """Report sizes and points that do not increase, and bytes of a token that are not given once."""
    serving = state.spec.serving
    if serving is None or serving.kv_cache is None or not issues.is_sound("/serving"):
        return
    cache = serving.kv_cache
    if (cache.bytes_per_token is None) == (cache.shape is None):
        is_given = cache.shape is not None
        issues.report(
            f"{_BASE}/bytes_per_token",
            "given together with shape, which says the same" if is_given else "the bytes of a token are not known",
            "give bytes_per_token, or shape",
            code="invalid-value" if is_given else "missing-field",
        )
    _check_points(cache, issues)


def check_kv_cache_fits(state: SpecState, issues: IssueCollector) -> None:
    """Report sizes that leave less than nothing of a card next to what is reserved."""
    problem = state.problem
    if problem is None or problem.serving is None or problem.serving.kv_cache is None:
        return
    tier = problem.cluster.device_tier
    cards = {problem.cluster.tier_bytes(rank, tier): rank for rank in reversed(range(problem.world_size))}
    smallest = min(cards)
    without = problem.of_kv_cache_size(0.0)
    left = smallest - sum(reserved_bytes(without, smallest).values())
    for index, size in enumerate(problem.serving.kv_cache.sizes_bytes):
        if size > left:
            issues.report(
                f"{_BASE}/sizes_bytes/{index}",
                f"{format_bytes(size)} of keys and values, and rank {cards[smallest]} has"
                f" {format_bytes(max(left, 0.0))} of {format_bytes(smallest)} next to what is reserved",
                f"use at most {left:.0f}" if left > 0 else "use cards with more memory",
                reads=("/hardware", "/constraints", "/model/dense"),
            )


def _check_points(cache: KvCacheSpec, issues: IssueCollector) -> None:
    before = -1.0
    for index, size in enumerate(cache.sizes_bytes):
        if size <= before:
            message = f"{size:g} bytes follow {before:g}"
            issues.report(f"{_BASE}/sizes_bytes/{index}", message, "list each size once, the smallest first")
        before = max(before, size)
    most_users, most_hits = -1.0, 0.0
    for index, (users, rate) in enumerate(cache.hit_rates):
        if users <= most_users:
            message = f"{users:g} users follow {most_users:g}"
            issues.report(f"{_BASE}/hit_rates/{index}/0", message, "list points by users, the fewest first")
        if rate < most_hits:
            message = f"{rate:g} of requests hit a cache of more users, and {most_hits:g} one of fewer"
            issues.report(f"{_BASE}/hit_rates/{index}/1", message, "give rates that do not fall")
        most_users, most_hits = max(most_users, users), max(most_hits, rate)
    if cache.hit_rates[0][0] == 0 and cache.hit_rates[0][1] > 0:
        message = f"{cache.hit_rates[0][1]:g} of requests hit a cache of no users"
        issues.report(f"{_BASE}/hit_rates/0/1", message, "use 0, or begin with more users")
