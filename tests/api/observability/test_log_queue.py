"""A log whose reader stops: no writer waits, lines keep their order, and dropped lines are reported."""

import contextlib
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from api.observability.log_queue import LogQueue
from api.observability.logging import set_up
from api.settings import Settings
from tests.support.contracts.race import race
from tests.support.paths import ROOT
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS


class Pipe:
    """A stream into a pipe, and what comes out of it."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self.stream = open(writer, "w")  # noqa: SIM115 (as long as the pipe)

    def wait(self) -> None:
        """Wait until there is something to read."""
        assert select.select([self._reader], [], [], 60)[0], "nothing comes"

    def read_until(self, last: str) -> list[str]:
        """Read lines up to one that contains a text."""
        read = b""
        while last.encode() not in read or not read.endswith(b"\n"):
            self.wait()
            read += os.read(self._reader, 65_536)
        return read.decode().splitlines()

    def read_lines(self) -> list[str]:
        """Read whole lines, as many as are there, one at least."""
        read = b""
        while not read.endswith(b"\n"):
            self.wait()
            read += os.read(self._reader, 65_536)
        return read.decode().splitlines()

    def close(self) -> None:
        os.close(self._reader)
        self.stream.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def test_lines_wait_in_order_for_a_reader(pipe: Pipe) -> None:
    log = LogQueue(pipe.stream)
    lines = [f"{number} {'x' * (number % 7000)}" for number in range(1, 400)]  # longer than a pipe takes at once, too
    for line in lines:
        log.write(f"{line}\n")
    assert pipe.read_until(lines[-1]) == lines
    log.flush()
    log.write("one more\n")
    assert pipe.read_until("one more") == ["one more"]


def test_dropped_lines_are_reported_when_a_reader_is_back(pipe: Pipe) -> None:
    bound = 1000
    log = LogQueue(pipe.stream, max_waiting_lines=bound)
    set_up(Settings(log_format="text", log_level="info"), log, is_terminal=False)
    log.write(f"line {0:9} {'x' * 100_000}\n")  # fills the pipe
    for number in range(1, 3000):
        log.write(f"line {number:9} {'x' * 84}\n")
    written: list[str] = []
    num_lost = 0
    while len(written) + num_lost < 3000:  # a thread that begins late reports twice, or before the last lines
        for line in pipe.read_lines():
            if "are lost" in line:
                num_lost += int(line.partition("in time: ")[2].split()[0])
            else:
                written.append(line)
    assert len(written) + num_lost == 3000
    assert num_lost > 0
    numbers = [int(line.split()[1]) for line in written]
    assert numbers == sorted(set(numbers))
    assert numbers[:bound] == list(range(bound))
    assert len(written) <= 2 * bound + 1  # in the queue, and taken out of it by the thread
    logging.getLogger("api").info("goes on")
    assert "goes on" in pipe.read_until("goes on")[0]


def test_the_report_of_dropped_lines_needs_no_room_in_the_queue(pipe: Pipe) -> None:
    log = LogQueue(pipe.stream, max_waiting_lines=1)
    log.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.write("x" * 200_000 + "\n")
    pipe.wait()  # the thread waits for a reader: the queue is empty
    for name in ("waits", "lost", "lost", "lost"):
        log.write(f"{name}\n")
    _, report = pipe.read_until("in time: 3")
    assert report.startswith("WARNING lines of the log that are lost")
    assert "waits" in pipe.read_until("waits")


def test_threads_do_not_mix_their_lines(pipe: Pipe) -> None:
    log = LogQueue(pipe.stream)
    read: list[list[str]] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_until("the end")))
    reader.start()

    def write(number: int) -> None:
        for _ in range(100):
            log.write(f"{chr(ord('a') + number) * (1 + 997 * number)}\n")

    race(8, write)
    log.write("the end\n")
    reader.join()
    assert sorted(read[0][:-1]) == sorted(
        chr(ord("a") + number) * (1 + 997 * number) for number in range(8) for _ in range(100)
    )


def test_a_line_that_a_pipe_does_not_take_whole_is_not_waited_for(pipe: Pipe) -> None:
    LogQueue(pipe.stream).write("x" * 200_000 + "\n")
    assert len(pipe.read_until("x")[0]) == 200_000


@thorough
def test_the_end_waits_for_a_reader_and_not_for_long(pipe: Pipe) -> None:
    began = time.monotonic()
    with contextlib.closing(LogQueue(pipe.stream)) as log:
        for number in range(100):
            log.write(f"{number} {'x' * 4000}\n")
    assert time.monotonic() - began < PATIENCE_SECONDS
    reader = threading.Timer(0.3, pipe.read_until, ["\n99 "])
    reader.start()
    log.flush()
    reader.join()


def test_what_is_logged_last_is_written_before_the_process_ends() -> None:
    """Also where it ends without the end of any block."""
    script = (
        "import logging, os, sys\n"
        "from api.observability.log_queue import LogQueue\n"
        "logging.getLogger().addHandler(LogQueue(sys.stderr))\n"
        "logging.getLogger().warning('the last word')\n"
    )
    for end in ("", "logging.shutdown(); os._exit(0)\n"):
        ended = subprocess.run(
            [sys.executable, "-c", script + end], capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert ended.stderr == "the last word\n"
