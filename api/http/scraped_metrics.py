"""Metrics that are read at the moment of a scrape: from the store, the caches, and the open streams."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from api.services.plans.cache import PlanCache
from api.store.database import Database
from api.store.models.models import MODEL_STATES
from api.store.solves.records import QUEUED, STATES
from api.store.webhooks.records import WEBHOOK_STATES

log = logging.getLogger(__name__)


class ScrapedMetrics(Collector):
    """What stands somewhere anyway, and is looked at when somebody asks."""

    def __init__(
        self, store: Database, *, caches: Mapping[str, PlanCache[Any]], num_streams: Callable[[], int]
    ) -> None:
        self._store, self._caches, self._num_streams = store, caches, num_streams

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: to register must not read the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read everything; where the store does not answer, say so and leave out what it would have reported."""
        yield from self._of_store()
        yield GaugeMetricFamily("shardplan_event_streams", "Streams of events that are open.", self._num_streams())
        yield from self._of_caches()

    def _of_store(self) -> Iterator[Metric]:
        up = "Whether the database answered."
        try:
            solves, models = self._store.num_solves_by_state(), self._store.num_models_by_state()
            webhooks, deliveries = self._store.num_webhooks_by_state(), self._store.num_waiting_deliveries()
        except SQLAlchemyError as error:
            log.warning("the store failed; metrics are reported without it: %s", error)
            yield GaugeMetricFamily("shardplan_store_up", up, 0)
            return
        yield GaugeMetricFamily("shardplan_store_up", up, 1)
        yield _by_state("shardplan_solves", "Solves that are stored.", solves, STATES)
        yield GaugeMetricFamily("shardplan_queue_depth", "Solves that wait.", solves.get(QUEUED, 0))
        yield _by_state("shardplan_cost_models", "Versions of learned cost models.", models, MODEL_STATES)
        yield _by_state("shardplan_webhooks", "Webhooks.", webhooks, WEBHOOK_STATES)
        yield GaugeMetricFamily("shardplan_webhook_queue_depth", "Messages to webhooks that wait.", deliveries)

    def _of_caches(self) -> Iterator[Metric]:
        hits = CounterMetricFamily("shardplan_cache_hits", "Plans or slices served from memory.", labels=["cache"])
        misses = CounterMetricFamily("shardplan_cache_misses", "Those that had to be made ready.", labels=["cache"])
        size = GaugeMetricFamily("shardplan_cache_bytes", "Memory that they take.", labels=["cache"])
        for name, cache in self._caches.items():
            use = cache.use()
            hits.add_metric([name], use.num_hits)
            misses.add_metric([name], use.num_misses)
            size.add_metric([name], use.num_bytes)
        yield from (hits, misses, size)


def _by_state(name: str, text: str, numbers: Mapping[str, int], states: tuple[str, ...]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["state"])
    for state in states:
        family.add_metric([state], numbers.get(state, 0))
    return family
