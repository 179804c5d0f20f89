"""Load of the machine that changes while something else is measured."""

import contextlib
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Self

#: Ends by itself when its parent is gone.
_SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"


class BusyProcesses:
    """Processes that keep a core busy each, of which as many run as is wanted; the others stand still."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(self._most)]
        self.run(0)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def run(self, number: int) -> None:
        """Let this many run."""
        for index, process in enumerate(self._processes):
            process.send_signal(signal.SIGCONT if index < number else signal.SIGSTOP)


@contextlib.contextmanager
def changing_load(
    busy: BusyProcesses, levels: Sequence[int], *, seed: int, least_seconds: float, most_seconds: float
) -> Iterator[list[int]]:
    """Keep changing the number of busy processes; yields the numbers so far, in order.

    Goes round ``levels`` from the first one, and stays at each for a time drawn between the least and the most.
    """
    drawn, ended = random.Random(seed), threading.Event()
    passed: list[int] = []

    def change() -> None:
        while not ended.is_set():
            level = levels[len(passed) % len(levels)]
            busy.run(level)
            passed.append(level)
            ended.wait(drawn.uniform(least_seconds, most_seconds))

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        yield passed
    finally:
        ended.set()
        thread.join()
        busy.run(0)
