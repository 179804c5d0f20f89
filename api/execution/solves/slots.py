"""Places for solves that are kept ready: as many as may run at the same time."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator

from api.execution.solves.slot import SolverSlot

_POLL_SECONDS = 0.2

log = logging.getLogger(__name__)


class Slots:
    """Lends each place to one solve at a time. Thread safe."""

    def __init__(self, number: int, make: Callable[[], SolverSlot]) -> None:
        # Last in, first out: the process that worked last has its memory warm.
        self._free: queue.LifoQueue[SolverSlot] = queue.LifoQueue()
        self._all = [make() for _ in range(number)]
        for slot in self._all:
            self._free.put(slot)

    def check(self) -> None:
        """Raise ``EngineUnavailable`` where nothing could run."""
        for slot in self._all[:1]:
            slot.check()

    def warm_up(self) -> None:
        """Start the processes; one that does not start is tried again with its first work."""
        for slot in self._all:
            try:
                slot.warm_up()
            except Exception:
                log.exception("a solver process did not start; trying again with the first solve")

    @contextlib.contextmanager
    def acquire(self, stopping: threading.Event) -> Iterator[SolverSlot | None]:
        """Yield a process, as soon as one is free; ``None`` if the server stops first."""
        slot: SolverSlot | None = None
        while slot is None and not stopping.is_set():
            with contextlib.suppress(queue.Empty):
                slot = self._free.get(timeout=_POLL_SECONDS)
        try:
            yield slot
        finally:
            if slot is not None:
                self._free.put(slot)

    def discard(self) -> None:
        for slot in self._all:
            slot.discard()
