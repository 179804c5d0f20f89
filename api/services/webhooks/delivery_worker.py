"""Delivers what the store has for webhooks: at least once, with patience, and without anybody waiting for it.

A delivery is taken with a lease, so that one process at a time sends it; where that process dies, another one takes it
when the lease is over. It has one id, which the receiver knows repetitions by.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from anyio import move_on_after
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from api.observability.metrics import WebhookMetrics
from api.release import versions
from api.services.webhooks.client import CAP_SECONDS, Answer, WebhookClient
from api.services.webhooks.signature import signed_headers
from api.store.database import Database
from api.store.webhooks.records import DELIVERED, DISABLED, FAILED, WAITING, AttemptEnd, TakenDelivery

NUM_AT_ONCE = 8  # messages under way in one server, at most one to each webhook
LEASE_SECONDS = 2 * CAP_SECONDS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and when a delivery is attempted, and when a webhook is given up."""

    attempts: int = 12  # some 22 hours, with the waits below
    first_wait_seconds: float = 5.0
    growth: float = 3.0  # of each wait to the next
    longest_wait_seconds: float = 6 * 3600.0
    max_failed_in_row: int = 3  # deliveries

    def wait_seconds(self, attempt: int, chance: float) -> float:
        """Return the wait after an attempt, from 1 on; ``chance``, 0 to 1, spreads it by a quarter either way."""
        grown = self.first_wait_seconds * self.growth ** (attempt - 1)
        return min(grown, self.longest_wait_seconds) * (0.75 + 0.5 * chance)


class DeliveryWorker:
    """One task of the event loop that hands deliveries to others, a few at a time."""

    def __init__(
        self,
        store: Database,
        sender: WebhookClient,
        metrics: WebhookMetrics,
        *,
        patience: Patience | None = None,
        poll_seconds: float = 1.0,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store, self._sender, self._metrics = store, sender, metrics
        self._patience = patience or Patience()
        self._poll_seconds, self._lease_seconds, self._clock, self._chance = poll_seconds, lease_seconds, clock, chance
        self._agent = f"shardplan/{versions()['shardplan']}"

    async def run(self) -> None:
        """Deliver until cancelled; what is under way then is attempted again, by the next process to take it."""
        busy: dict[str, asyncio.Task[None]] = {}
        freed = asyncio.Event()

        def free(webhook_id: str, _task: object) -> None:
            del busy[webhook_id]
            freed.set()

        try:
            while True:
                freed.clear()
                for taken in await self._take(list(busy)):
                    task = busy[taken.webhook_id] = asyncio.create_task(self._deliver(taken))
                    task.add_done_callback(partial(free, taken.webhook_id))
                with move_on_after(self._poll_seconds):
                    await freed.wait()
        finally:
            for task in busy.values():
                task.cancel()

    async def _take(self, busy: list[str]) -> list[TakenDelivery]:
        """Take what is due and what there is room for."""
        room = NUM_AT_ONCE - len(busy)
        if room == 0:
            return []
        try:
            return await run_sync(
                lambda: self._store.take_deliveries(limit=room, lease_seconds=self._lease_seconds, busy=busy)
            )
        except SQLAlchemyError as error:
            log.warning("the store failed; looking for deliveries again: %s", error)
        except Exception:
            log.exception("looking for deliveries failed; looking again")
        return []

    async def _deliver(self, taken: TakenDelivery) -> None:
        """Attempt one delivery, and say what became of it; if that is lost, the lease ends it.

        Of a delivery that has ended meanwhile, or that another process has taken since, that process reports.
        """
        body, began = taken.body.encode(), time.monotonic()
        signature = signed_headers(taken.secret, taken.id, body, timestamp=int(self._clock()))
        headers = {**signature, "Content-Type": "application/json", "User-Agent": self._agent}
        try:
            answer = await self._sender.send(taken.url, headers, body)
            end = self._end_of(taken.attempt, answer)
            most = self._patience.max_failed_in_row
            is_last = await run_sync(
                lambda: self._store.end_attempt(taken.id, attempt=taken.attempt, end=end, max_failed_in_row=most)
            )
            if not is_last:
                log.info("attempt %d of delivery %s is over, and not the last one", taken.attempt, taken.id)
                return
            self._metrics.attempt_seconds.labels(end.state).observe(time.monotonic() - began)
            if end.state == FAILED:
                await self._log_failure(taken, answer)
        except SQLAlchemyError as error:
            log.warning("the store failed; delivery %s is attempted again: %s", taken.id, error)
        except Exception:
            log.exception("delivery %s could not be attempted; it is attempted again", taken.id)

    def _end_of(self, attempt: int, answer: Answer) -> AttemptEnd:
        if answer.error is None:
            return AttemptEnd(state=DELIVERED, status=answer.status)
        if answer.error == "gone":
            return AttemptEnd(state=FAILED, status=answer.status, error=answer.error, disabled_reason="gone")
        if attempt >= self._patience.attempts:
            return AttemptEnd(state=FAILED, status=answer.status, error=answer.error)
        wait_seconds = self._patience.wait_seconds(attempt, self._chance())
        return AttemptEnd(state=WAITING, status=answer.status, error=answer.error, retry_seconds=wait_seconds)

    async def _log_failure(self, taken: TakenDelivery, answer: Answer) -> None:
        log.warning("delivery %s to webhook %s was given up: %s", taken.id, taken.webhook_id, answer.error)
        hook = await run_sync(self._store.for_tenant(taken.tenant).webhook, taken.webhook_id)
        if hook is not None and hook.state == DISABLED:
            log.warning("webhook %s is disabled: %s", taken.webhook_id, hook.disabled_reason)
