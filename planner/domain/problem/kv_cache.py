"""A cache of users' keys and values next to the tables: what it takes of every rank, and what its hits save."""

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.domain.expect import expect


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """Keys and values that a generative model keeps of users, in equal parts on all ranks of a host.

    A request whose user is in the cache saves their recomputation. How often that is, follows from points: between two
    of them the share of hits is linear, from no users and no hits to the first, and constant after the last.
    """

    sizes_bytes: tuple[float, ...]  # of every rank that the cache may take, increasing; one where the size is decided
    bytes_per_token: float  # of all layers, on all ranks together
    tokens_per_user: float
    hit_rates: tuple[tuple[float, float], ...]  # users in the cache, and the share of requests that hit
    recompute_seconds: float  # of a miss, on every rank

    def __post_init__(self) -> None:
        expect(bool(self.sizes_bytes), "at least one size of the cache")
        expect(self.sizes_bytes == tuple(sorted(set(self.sizes_bytes))), "sizes that increase")
        expect(all(0 <= size < math.inf for size in self.sizes_bytes), "sizes >= 0")
        expect(0 < self.bytes_per_token < math.inf, "bytes_per_token > 0")
        expect(0 < self.tokens_per_user < math.inf, "tokens_per_user > 0")
        expect(0 <= self.recompute_seconds < math.inf, "recompute_seconds >= 0")
        users, rates = zip(*self.hit_rates, strict=True)
        expect(users == tuple(sorted(set(users))) and users[0] >= 0, "users that increase")
        expect(rates == tuple(sorted(rates)) and rates[0] >= 0 and rates[-1] <= 1, "hit rates in [0, 1] that grow")

    @property
    def is_decided(self) -> bool:
        """Whether the cache has one size."""
        return len(self.sizes_bytes) == 1

    @property
    def least_bytes(self) -> float:
        """The smallest size on every rank; the size, once it is decided."""
        return self.sizes_bytes[0]

    def of_size(self, size_bytes: float) -> "KvCache":
        """Return the cache with a size that is decided."""
        return replace(self, sizes_bytes=(size_bytes,))

    def users(self, num_ranks: int) -> float:
        """Return how many users a cache of the least size holds on so many ranks."""
        return self.least_bytes * num_ranks / (self.bytes_per_token * self.tokens_per_user)

    def hit_rate(self, num_ranks: int) -> float:
        """Return the share of requests that find their user in a cache of the least size."""
        users, rates = zip(*self.hit_rates, strict=True)
        if users[0] > 0:
            users, rates = (0.0, *users), (0.0, *rates)
        return float(np.interp(self.users(num_ranks), users, rates))

    def seconds_per_request(self, num_ranks: int) -> float:
        """Return the seconds of recomputation that a request has on average."""
        return (1.0 - self.hit_rate(num_ranks)) * self.recompute_seconds
