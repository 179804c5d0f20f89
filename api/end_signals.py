"""Lets requests wait for the end of work in the background."""

import asyncio
import contextlib
from collections.abc import Iterator


class EndSignals:
    """Lets requests wait for the end of solves and fits, by their ids, without a thread each."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: dict[str, set[asyncio.Event]] = {}
        self._all_told = False

    def attach(self) -> None:
        """Use the running event loop."""
        self._loop = asyncio.get_running_loop()

    def tell(self, work_id: str) -> None:
        """Say, from any thread, that something ended."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set, work_id)

    def tell_all(self) -> None:
        """Let everybody go who waits or begins to, because the server stops; from any thread or signal handler."""
        self._all_told = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set_all)

    @contextlib.contextmanager
    def listening(self, work_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when it ends."""
        event = asyncio.Event()
        if self._all_told:
            event.set()
        self._events.setdefault(work_id, set()).add(event)
        try:
            yield event
        finally:
            self._events[work_id].discard(event)
            if not self._events[work_id]:
                del self._events[work_id]

    def _set_all(self) -> None:
        for work_id in tuple(self._events):
            self._set(work_id)

    def _set(self, work_id: str) -> None:
        for event in self._events.get(work_id, ()):
            event.set()
