"""Solver processes that are kept ready: as many as works may run at the same time."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator

from api.process_slot import ProcessSlot

_POLL_SECONDS = 0.2

log = logging.getLogger(__name__)


class Slots:
    """Lends each process to one work at a time. Thread safe."""

    def __init__(self, number: int, make: Callable[[], ProcessSlot]) -> None:
        # Last in, first out: the process that worked last has its memory warm.
        self._free: queue.LifoQueue[ProcessSlot] = queue.LifoQueue()
        self._all = [make() for _ in range(number)]
        for slot in self._all:
            self._free.put(slot)

    def warm_up(self) -> None:
        """Start the processes; one that does not start is tried again with its first work."""
        for slot in self._all:
            try:
                slot.warm_up()
            except Exception:
                log.exception("a solver process did not start; trying again with the first solve")

    @contextlib.contextmanager
    def lend(self, stopping: threading.Event) -> Iterator[ProcessSlot | None]:
        """Yield a process, as soon as one is free; ``None`` where the server stops first."""
        slot: ProcessSlot | None = None
        while slot is None and not stopping.is_set():
            with contextlib.suppress(queue.Empty):
                slot = self._free.get(timeout=_POLL_SECONDS)
        try:
            yield slot
        finally:
            if slot is not None:
                self._free.put(slot)

    def discard(self) -> None:
        """Kill all processes."""
        for slot in self._all:
            slot.discard()
