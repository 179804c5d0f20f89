"""The log's way to a stream: a bounded queue, and a thread that writes what is in it.

A pipe takes 64 KiB; then a write waits for the reader, and a service that waits for the reader of its log answers no
request. Here only the thread waits. Lines that the queue has no room for are dropped, counted and reported.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from typing import TextIO

#: About 4 MiB of lines about requests.
MAX_WAITING_LINES = 16_384
#: Lines of so long a time are written together: to wake the thread for each line takes a third as long as a fetch.
_TOGETHER_SECONDS = 0.01
#: How long the end waits for a reader that stopped.
_LAST_SECONDS = 2.0

log = logging.getLogger(__name__)


class LogQueue(logging.Handler):
    """Formats records where they are logged, and writes their lines to a stream's file in a thread. Thread safe."""

    def __init__(self, stream: TextIO, max_waiting_lines: int = MAX_WAITING_LINES) -> None:
        super().__init__()
        self._file = stream.fileno()
        self._lines: queue.Queue[str] = queue.Queue(max_waiting_lines)
        self._num_dropped, self._counting = 0, threading.Lock()
        threading.Thread(target=self._write_all, name="log-writer", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.write(f"{self.format(record)}\n")
        except Exception:
            self.handleError(record)

    def write(self, line: str) -> None:
        """Queue a line, or drop it."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            with self._counting:
                self._num_dropped += 1

    def flush(self) -> None:
        """Wait until all lines are written, for a moment at most; ``logging`` does so at the end of the process."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, timeout=_LAST_SECONDS)

    def close(self) -> None:
        """Write what is left."""
        self.flush()
        super().close()

    def _write_all(self) -> None:
        while True:
            lines = [self._lines.get()]
            time.sleep(_TOGETHER_SECONDS)
            lines += [self._lines.get_nowait() for _ in range(self._lines.qsize())]
            self._write_now("".join(lines))
            with self._counting:
                num_dropped, self._num_dropped = self._num_dropped, 0
            if num_dropped:
                self._report(num_dropped)
            for _ in lines:
                self._lines.task_done()

    def _write_now(self, text: str) -> None:
        content = text.encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError):  # a full disk, or a reader that is gone
            while content:
                content = content[os.write(self._file, content) :]

    def _report(self, num_dropped: int) -> None:
        """Report lost lines past the queue, which may be full again and would lose the report."""
        message = "lines of the log that are lost, because they were not read in time: %d"
        record = log.makeRecord(log.name, logging.WARNING, __file__, 0, message, (num_dropped,), None)
        if log.isEnabledFor(record.levelno) and self.filter(record):
            self._write_now(f"{self.format(record)}\n")
