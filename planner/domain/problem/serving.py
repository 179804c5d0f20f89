"""A host that serves requests: how large they are, how often they come, how busy its cards may be."""

import math
from dataclasses import dataclass

from planner.domain.expect import expect
from planner.domain.problem.kv_cache import KvCache

#: Where requests of equal length come at random, one then waits for two others on average:
#: rho / (2 (1 - rho)) service times (Pollaczek and Khinchine's formula for a queue M/D/1).
DEFAULT_UTILIZATION_LIMIT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a host is asked for; its ranks are cards that work on one request together."""

    samples_per_request: int
    requests_per_second: float | None = None  # where given, a rate that a plan must sustain
    kv_cache: KvCache | None = None  # keys and values of users, next to the tables
    utilization_limit: float = DEFAULT_UTILIZATION_LIMIT  # busy share of the time of every card, at most
    p99_seconds: float | None = None  # where given, 99 of 100 requests are answered within it, waiting included

    def __post_init__(self) -> None:
        expect(self.samples_per_request >= 1, "samples_per_request >= 1")
        expect(self.requests_per_second is None or 0 < self.requests_per_second < math.inf, "requests_per_second > 0")
        expect(0 < self.utilization_limit <= 1, "utilization_limit in (0, 1]")
        expect(self.p99_seconds is None or 0 < self.p99_seconds < math.inf, "p99_seconds > 0")
        has_rate = self.p99_seconds is None or self.requests_per_second is not None
        expect(has_rate, "requests_per_second where p99_seconds is given")
        expect(self.p99_seconds is None or self.kv_cache is None, "no kv_cache where p99_seconds is given")
