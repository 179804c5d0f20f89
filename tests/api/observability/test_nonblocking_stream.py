"""A log that nobody reads: whoever writes does not wait, lines keep their order, and what is lost is said."""

import logging
import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.observability.logging import set_up
from api.observability.nonblocking_stream import UnhurriedStream, unhurried
from api.settings import Settings
from tests.support.contracts.race import race


class Pipe:
    """A stream into a pipe, and what comes out of it."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self.stream = open(writer, "w")  # noqa: SIM115 (as long as the pipe)

    def read_until(self, last: str) -> list[str]:
        """Read lines up to one that contains a text."""
        read = b""
        while last.encode() not in read or not read.endswith(b"\n"):
            assert select.select([self._reader], [], [], 20)[0], "nothing more comes"
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


def test_lines_are_kept_in_order_until_somebody_reads(pipe: Pipe) -> None:
    stream = UnhurriedStream(pipe.stream)
    lines = [f"{number} {'x' * (number % 7000)}" for number in range(1, 400)]  # longer than a pipe takes at once, too
    for line in lines:
        assert stream.write(f"{line}\n") == len(line) + 1
    assert pipe.read_until(lines[-1]) == lines
    stream.finish()
    stream.write("one more\n")
    assert pipe.read_until("one more") == ["one more"]


def test_what_is_lost_is_said_once_somebody_reads(pipe: Pipe) -> None:
    stream = UnhurriedStream(pipe.stream, max_waiting_bytes=100_000)
    set_up(Settings(log_format="text", log_level="info"), stream)
    for number in range(3000):
        stream.write(f"line {number:9} {'x' * 84}\n")  # 100 bytes
    *kept, last = pipe.read_until("are lost")
    numbers = [int(line.split()[1]) for line in kept]
    assert numbers == sorted(set(numbers))
    assert numbers[:1000] == list(range(1000))
    assert 100_000 <= 100 * len(kept) <= 100_000 + 65_536 + 100
    assert last.endswith(f": {3000 - len(kept)}") or f": {3000 - len(kept)} " in last
    logging.getLogger("api").info("goes on")
    assert "goes on" in pipe.read_until("goes on")[0]


def test_threads_do_not_mix_their_lines(tmp_path: Path, pipe: Pipe) -> None:
    stream = UnhurriedStream(pipe.stream)
    read: list[list[str]] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_until("the end")))
    reader.start()

    def write(number: int) -> None:
        for _ in range(100):
            stream.write(f"{chr(ord('a') + number) * (1 + 997 * number)}\n")

    race(8, write)
    stream.write("the end\n")
    reader.join()
    assert sorted(read[0][:-1]) == sorted(
        chr(ord("a") + number) * (1 + 997 * number) for number in range(8) for _ in range(100)
    )


def test_a_line_that_a_pipe_does_not_take_whole_is_not_waited_for(pipe: Pipe) -> None:
    UnhurriedStream(pipe.stream).write("x" * 200_000 + "\n")
    assert len(pipe.read_until("x")[0]) == 200_000


def test_the_end_waits_for_a_reader_and_not_for_long(pipe: Pipe) -> None:
    began = time.monotonic()
    with unhurried(pipe.stream) as stream:
        for number in range(100):
            stream.write(f"{number} {'x' * 4000}\n")
    assert time.monotonic() - began < 20
    assert not stream.finish()
    reader = threading.Timer(0.3, pipe.read_until, ["\n99 "])
    reader.start()
    assert stream.finish()
    reader.join()


def test_a_terminal_is_known(pipe: Pipe) -> None:
    assert not UnhurriedStream(pipe.stream).isatty()
    leader, follower = os.openpty()
    with open(leader, "rb", buffering=0), open(follower, "w") as terminal:
        assert UnhurriedStream(terminal).isatty()
