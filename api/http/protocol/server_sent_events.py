"""Streams of what happens to solves, as server-sent events, for any number of listeners at the price of one.

Each solve that somebody listens to has a feed: it reads what is new once and keeps it, ready to be
sent, for all listeners of the solve. A feed goes with its last listener.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from anyio.to_thread import run_sync
from fastapi.sse import format_sse_event
from sqlalchemy.exc import SQLAlchemyError

from api.schemas.events import ProgressEvent, StateEvent
from api.schemas.solve import solve_document
from api.services.errors import ApiError, not_found
from api.services.solves.notifications import SolveNotifications
from api.store.database import TenantStore
from api.store.solves.records import ENDED, EventRecord, SolveRecord

HEARTBEAT_SECONDS = 15.0
_RETRY_SECONDS = 1.0
_HEARTBEAT = format_sse_event(comment="still here")

log = logging.getLogger(__name__)


class _Feed:
    """What is known of one solve, as bytes to send."""

    def __init__(self, solve_id: str) -> None:
        self.solve_id = solve_id
        self.frames: list[tuple[int, bytes]] = []  # progress events with their numbers
        self.state, self.state_frame = "", b""
        self.end_frame: bytes | None = None
        self.is_over = False  # nothing more will come
        self.changed: set[asyncio.Event] = set()  # one of each listener
        self.task: asyncio.Task[None] | None = None

    @property
    def last_seq(self) -> int:
        return self.frames[-1][0] if self.frames else 0

    def take(self, record: SolveRecord | None, events: list[EventRecord]) -> None:
        """Note what is new, and wake the listeners."""
        self.frames += [(event.seq, _progress_frame(event)) for event in events]
        if record is None:
            self.end_frame = b""  # deleted meanwhile: there is nothing more to say
        elif record.state in ENDED:
            self.end_frame = format_sse_event(
                event="end", id=str(self.last_seq), data_str=solve_document(record).model_dump_json()
            )
        elif record.state != self.state:
            self.state, self.state_frame = record.state, _state_frame(record)
        self.wake()

    def wake(self) -> None:
        """Let the listeners look."""
        for event in self.changed:
            event.set()


@dataclass(slots=True)
class Listeners:
    """How many streams are open, of all tenants together, and how many may be."""

    max_number: int
    number: int = 0


class SolveStreams:
    """Hands out streams of one tenant's solves, a bounded number at a time. To be used in the event loop."""

    def __init__(
        self,
        store: TenantStore,
        signals: SolveNotifications,
        listeners: Listeners,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._store, self._signals = store, signals
        self._listeners, self._heartbeat_seconds = listeners, heartbeat_seconds
        self._feeds: dict[str, _Feed] = {}

    async def check(self, solve_id: str) -> None:
        """Reject a listener to whom a stream cannot be opened, as long as a problem can still be answered."""
        if solve_id not in self._feeds and await run_sync(self._store.solve, solve_id) is None:
            raise not_found("solve")
        if self._listeners.number >= self._listeners.max_number:
            detail = f"{self._listeners.max_number} streams are open already"
            raise ApiError("too-many-listeners", detail, headers={"Retry-After": "5"})

    async def stream(self, solve_id: str, *, after: int) -> AsyncIterator[bytes]:
        """Yield the events of a solve with numbers above ``after``, then its end.

        The stream stops without an end where the server stops: the listener comes back with the last number that
        it has seen.
        """
        self._listeners.number += 1
        try:
            with self._listening(solve_id) as (feed, changed):
                async for chunk in self._chunks(feed, changed, after):
                    yield chunk
        finally:
            self._listeners.number -= 1

    async def _chunks(self, feed: _Feed, changed: asyncio.Event, after: int) -> AsyncIterator[bytes]:
        yield _HEARTBEAT  # proxies and clients see at once that the stream is open
        last_state = ""
        while True:
            changed.clear()
            if feed.end_frame is None and feed.state != last_state:
                last_state = feed.state
                yield feed.state_frame
            fresh = [(seq, frame) for seq, frame in feed.frames if seq > after]
            if fresh:
                after = fresh[-1][0]
                yield b"".join(frame for _, frame in fresh)
            if feed.end_frame is not None:
                yield feed.end_frame
                return
            if feed.is_over:
                return
            try:
                # Not wait_for, which forgets that its task was cancelled where the event is set in the same moment.
                async with asyncio.timeout(self._heartbeat_seconds):
                    await changed.wait()
            except TimeoutError:
                yield _HEARTBEAT

    @contextlib.contextmanager
    def _listening(self, solve_id: str) -> Iterator[tuple[_Feed, asyncio.Event]]:
        feed = self._feeds.get(solve_id)
        if feed is None:
            feed = self._feeds[solve_id] = _Feed(solve_id)
            feed.task = asyncio.create_task(self._fill(feed))
        changed = asyncio.Event()
        feed.changed.add(changed)
        try:
            yield feed, changed
        finally:
            feed.changed.discard(changed)
            if not feed.changed:
                del self._feeds[solve_id]
                if feed.task is not None:
                    feed.task.cancel()

    async def _fill(self, feed: _Feed) -> None:
        """Read what is new about a solve, whenever there is something, until it has ended."""
        try:
            with self._signals.following(feed.solve_id) as something:
                while True:
                    something.clear()
                    try:
                        feed.take(*await run_sync(self._read, feed.solve_id, feed.last_seq))
                    except SQLAlchemyError as error:
                        log.warning("the store failed; reading again: %s", error)
                        await asyncio.sleep(_RETRY_SECONDS)
                        something.set()
                    if feed.end_frame is not None or self._signals.is_stopping:
                        break
                    await something.wait()
        except Exception:
            log.exception("the streams of the solve end early", extra={"solve_id": feed.solve_id})
        finally:
            feed.is_over = True
            feed.wake()

    def _read(self, solve_id: str, after: int) -> tuple[SolveRecord | None, list[EventRecord]]:
        # The record first: a solve that is seen ended has all its events by then.
        record = self._store.solve(solve_id)
        return record, self._store.events(solve_id, after=after)


def _progress_frame(event: EventRecord) -> bytes:
    document = ProgressEvent.model_validate({**event.document, "at_seconds": event.at_seconds})
    return format_sse_event(event="progress", id=str(event.seq), data_str=document.model_dump_json())


def _state_frame(record: SolveRecord) -> bytes:
    return format_sse_event(event="state", data_str=StateEvent.of(record).model_dump_json())
