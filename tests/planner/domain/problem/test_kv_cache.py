"""Keys and values of users: how many fit, how often they are hit, and what misses cost."""

from dataclasses import replace

import pytest

from planner.domain.problem.kv_cache import KvCache

#: 250 bytes of a token, 2,000 tokens of a user: 0.5 MB of a user.
CACHE = KvCache(
    sizes_bytes=(1e9,),
    bytes_per_token=250.0,
    tokens_per_user=2_000.0,
    hit_rates=((1_000.0, 0.2), (3_000.0, 0.6)),
    recompute_seconds=0.01,
)


@pytest.mark.parametrize(
    ("size", "users", "rate"),
    [
        (0.0, 0.0, 0.0),
        (0.25e9, 500.0, 0.1),  # half way from no users to the first point
        (0.5e9, 1_000.0, 0.2),
        (1e9, 2_000.0, 0.4),
        (1.5e9, 3_000.0, 0.6),
        (9e9, 18_000.0, 0.6),  # nothing is known of more users than the last point has
    ],
)
def test_users_of_all_ranks_and_their_hits(size: float, users: float, rate: float) -> None:
    """Four ranks of a quarter hold as much as one."""
    for num_ranks in (1, 4):
        cache = CACHE.of_size(size / num_ranks)
        assert cache.users(num_ranks) == pytest.approx(users)
        assert cache.hit_rate(num_ranks) == pytest.approx(rate)
        assert cache.seconds_per_request(num_ranks) == pytest.approx((1 - rate) * 0.01)


def test_points_that_begin_with_no_users_are_taken_as_they_are() -> None:
    cache = replace(CACHE, hit_rates=((0.0, 0.0), (1_000.0, 0.5)), sizes_bytes=(1e8,))
    assert cache.hit_rate(1) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes_bytes": ()},
        {"sizes_bytes": (2.0, 1.0)},
        {"sizes_bytes": (-1.0,)},
        {"bytes_per_token": 0.0},
        {"tokens_per_user": 0.0},
        {"recompute_seconds": -1.0},
        {"hit_rates": ((3.0, 0.1), (1.0, 0.2))},
        {"hit_rates": ((1.0, 0.3), (3.0, 0.2))},
        {"hit_rates": ((1.0, 1.3),)},
    ],
)
def test_what_no_cache_is(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        replace(CACHE, **changes)
