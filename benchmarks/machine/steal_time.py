"""Processor time that the host of a virtual machine gave to others while something was measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = Path("/proc/stat")
#: Place of "steal" among the numbers of the line of all processors (proc(5)), and how many of them make up all time.
_STEAL, _ALL = 7, 8


@dataclass(slots=True)
class Stolen:
    """What was taken; ``None`` where the system does not say."""

    share: float | None = None  # of all processors' time

    def __str__(self) -> str:
        return "" if self.share is None else f"{self.share:.1%} stolen"


@contextmanager
def watched() -> Iterator[Stolen]:
    """Yield what is known when the block has ended."""
    stolen, before = Stolen(), _ticks()
    yield stolen
    after = _ticks()
    if before and after and sum(after) > sum(before):
        stolen.share = (after[_STEAL] - before[_STEAL]) / (sum(after) - sum(before))


def _ticks() -> list[int]:
    try:
        line = _TICKS.read_text().split("\n", 1)[0].split()
    except OSError:
        return []
    return [int(number) for number in line[1 : _ALL + 1]]
