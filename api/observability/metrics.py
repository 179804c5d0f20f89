"""What is counted for Prometheus: requests, solves and fits; each app and each engine has a registry of its own.

What is read at the moment of a scrape is in ``api.http.scraped_metrics``. ``docs/operations.md`` lists all of it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector

from api.release import versions
from api.store.maintenance.retention import PRUNED
from api.store.webhooks.records import DELIVERY_STATES

#: From a short answer out of memory to the longest wait for a solve.
_REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_WORK_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
#: What stands for whatever callers make up: addresses that no route has, methods that HTTP does not.
OTHER = "other"


def new_registry() -> CollectorRegistry:
    """Return a registry that reports what runs here, and what the process takes."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    Info("shardplan_build", "Releases of the service and of what it is made of.", registry=registry).info(versions())
    return registry


#: The status recorded for a request whose caller hung up before the answer. It is never sent.
CALLER_GONE = 499


def route_of(scope: Mapping[str, Any]) -> str:
    """Return the template of the route that answered a request: never an address as it was sent."""
    return str(getattr(scope.get("route"), "path_format", OTHER))


def method_of(scope: Mapping[str, Any]) -> str:
    """Return the method of a request, of those that HTTP has."""
    method = scope["method"]
    return str(method) if method in _METHODS else OTHER


class RequestMetrics:
    """Requests by route, method and class of status. Fulfils ``api.http.middleware.request_observers.Observer``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "shardplan_http_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ("route", "method", "status"),
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        # Looking labels up takes longer than counting; there are few: routes, methods, five classes.
        self._known: dict[tuple[str, str, int], Histogram] = {}

    def __call__(self, scope: Mapping[str, Any], status: int, seconds: float, _num_bytes: int) -> None:
        key = (route_of(scope), method_of(scope), status // 100)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._seconds.labels(key[0], key[1], f"{key[2]}xx")
        known.observe(seconds)


class WorkMetrics:
    """Solves and fits that this process runs. Thread safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        histogram = partial(Histogram, buckets=_WORK_BUCKETS, registry=registry)
        counter = partial(Counter, registry=registry)
        self._waited = histogram(
            "shardplan_solve_queue_seconds", "Time from the acceptance of a solve to its first begin."
        )
        self._seconds = histogram(
            "shardplan_solve_seconds", "Time from the last begin of a solve to its end.", ("state",)
        )
        self._ended = counter(
            "shardplan_solves_ended",
            "Solves that ended, by state and by reason of the termination or code of the error.",
            ("state", "reason"),
        )
        self.incumbents = counter(
            "shardplan_incumbents", "Plans that solves found and that were better than those before."
        )
        self.solves_taken_over = counter(
            "shardplan_solves_taken_over", "Solves that were queued again because the process that ran them was gone."
        )
        self.fit_seconds = histogram(
            "shardplan_fit_seconds", "Time from the last begin of a fit to its end.", ("state",)
        )
        self.pruned = counter("shardplan_pruned", "What was removed because it was older than it is kept.", ("kind",))
        for kind in PRUNED:
            self.pruned.labels(kind)

    def solve_began(self, waited_seconds: float) -> None:
        """Count a solve that is begun for the first time."""
        self._waited.observe(max(waited_seconds, 0.0))

    def solve_ended(self, state: str, reason: str, seconds: float | None) -> None:
        """Count a solve that ended; ``seconds`` is none of one that was not running."""
        self._ended.labels(state, reason).inc()
        if seconds is not None:
            self._seconds.labels(state).observe(seconds)


class WebhookMetrics:
    """Messages to webhooks that this process sends."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempt_seconds = Histogram(
            "shardplan_webhook_attempt_seconds",
            "Time of an attempt to deliver a message, by what the delivery is after it.",
            ("state",),
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        for state in DELIVERY_STATES:
            self.attempt_seconds.labels(state)
