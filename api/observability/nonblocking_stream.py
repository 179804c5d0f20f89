"""A stream for the log on which nobody waits: where its reader has stopped, lines are kept for a while, and then lost.

A pipe takes 64 KiB. Whoever writes more than is read is made to wait by the system, and a service that waits for the
reader of its log answers nobody.
"""

import contextlib
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol, TextIO

#: What is kept of a log that nobody reads.
MAX_WAITING_BYTES = 4 * 1024**2
#: What is left at the end is written as long as somebody reads it, and no longer than this.
_LAST_SECONDS = 2.0

log = logging.getLogger(__name__)


class LogStream(Protocol):
    """What lines are written to."""

    def write(self, text: str, /) -> int:
        """Write a line."""
        ...

    def flush(self) -> None:
        """Write what is held back."""
        ...

    def isatty(self) -> bool:
        """Whether people read along."""
        ...


class UnhurriedStream:
    """Fulfils ``LogStream``: writes to a stream's file, at once where that takes no time, else in a thread.

    Thread safe.
    """

    def __init__(self, stream: TextIO, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self._file, self._is_terminal = stream.fileno(), stream.isatty()
        self._max_waiting_bytes = max_waiting_bytes
        self._ready = select.poll()
        self._ready.register(self._file, select.POLLOUT)
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._num_waiting_bytes = self._num_lost = 0
        self._writer: threading.Thread | None = None

    def write(self, text: str) -> int:
        """Write a line, or keep it for later, or lose it."""
        line = text.encode("utf-8", "backslashreplace")
        with self._changed:
            # A pipe that is ready takes so much without a wait, and whole.
            if not self._waiting and len(line) <= select.PIPE_BUF and self._ready.poll(0):
                _write(self._file, line)
            elif self._num_waiting_bytes + len(line) > self._max_waiting_bytes:
                self._num_lost += 1
            else:
                self._keep(line)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """Whether people read along."""
        return self._is_terminal

    def finish(self) -> bool:
        """Wait until all is written that was kept, a moment at most; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout=_LAST_SECONDS)

    def _keep(self, line: bytes) -> None:
        self._waiting.append(line)
        self._num_waiting_bytes += len(line)
        self._changed.notify_all()
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_waiting, name="log-writer", daemon=True)
            self._writer.start()

    def _write_waiting(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                line = self._waiting[0]
            # Whoever writes meanwhile finds that this line waits, and keeps the order.
            _write(self._file, line)
            with self._changed:
                self._waiting.popleft()
                self._num_waiting_bytes -= len(line)
                num_lost = 0
                if not self._waiting:
                    num_lost, self._num_lost = self._num_lost, 0
                    self._changed.notify_all()
            if num_lost:
                log.warning("lines of the log that are lost, for nobody read them in time: %d", num_lost)


@contextlib.contextmanager
def unhurried(stream: TextIO) -> Iterator[UnhurriedStream]:
    """Yield a stream to a stream's file; what is kept at the end of the block is written, where somebody reads."""
    made = UnhurriedStream(stream)
    try:
        yield made
    finally:
        made.finish()


def _write(file: int, line: bytes) -> None:
    """Write all of a line. A full disk, or a reader that is gone, is nothing that anybody should fail of."""
    with contextlib.suppress(OSError):
        while line:
            line = line[os.write(file, line) :]
