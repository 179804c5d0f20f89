"""Lets requests wait for work in the background: for its end, or for anything new about it."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from anyio.to_thread import run_sync

Record = TypeVar("Record")


class SolveNotifications:
    """Lets requests wait for solves and fits, by their ids, without a thread each."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ends: dict[str, set[asyncio.Event]] = {}
        self._changes: dict[str, set[asyncio.Event]] = {}
        #: Whether the server stops, so that no request should wait any longer.
        self.is_stopping = False

    @property
    def awaited(self) -> set[str]:
        """The ids that somebody waits for; in the event loop."""
        return self._ends.keys() | self._changes.keys()

    def attach(self) -> None:
        self._loop = asyncio.get_running_loop()

    def ended(self, work_id: str) -> None:
        """Say, from any thread, that something ended."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set, work_id)

    def changed(self, work_id: str) -> None:
        """Say, from any thread, that something began to run or found something."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_set_events, self._changes, work_id)

    def shutdown(self) -> None:
        """Let everybody go who waits or begins to, because the server stops; from any thread or signal handler."""
        self.is_stopping = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set_all)

    def listening(self, work_id: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        """Yield an event that is set when it ends."""
        return self._registered(self._ends, work_id)

    def following(self, work_id: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        """Yield an event that is set whenever something about it changes, its end included."""
        return self._registered(self._changes, work_id)

    async def wait_for_end(
        self, work_id: str, read: Callable[[], Record], has_ended: Callable[[Record], bool], seconds: float
    ) -> Record:
        """Return the record of a solve or fit as soon as it has ended, or as it is after some time."""
        with self.listening(work_id) as event:
            record = await run_sync(read)
            if has_ended(record) or seconds <= 0:
                return record
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), seconds)
        return await run_sync(read)

    @contextlib.contextmanager
    def _registered(self, events: dict[str, set[asyncio.Event]], work_id: str) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        if self.is_stopping:
            event.set()
        events.setdefault(work_id, set()).add(event)
        try:
            yield event
        finally:
            events[work_id].discard(event)
            if not events[work_id]:
                del events[work_id]

    def _set_all(self) -> None:
        for work_id in self.awaited:
            self._set(work_id)

    def _set(self, work_id: str) -> None:
        _set_events(self._ends, work_id)
        _set_events(self._changes, work_id)


def _set_events(events: dict[str, set[asyncio.Event]], work_id: str) -> None:
    for event in events.get(work_id, ()):
        event.set()
