"""Times of work on a device, their median, and how far the repeats lie apart."""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch

Value = TypeVar("Value")
#: More than the level-2 cache of any accelerator: written before every lap, so that none finds its rows there.
_FLUSH_BYTES = 256 * 1024 * 1024
#: How long such a write takes at least: 256 MiB at 4 TB/s, faster than any accelerator that was measured.
_FLUSH_SECONDS = 60e-6
_MOST_FLUSHES = 40
#: Laps whose launching says how long the next one may take to launch: forward and backward take turns.
_REMEMBERED_LAPS = 6


def device_kind(device: str) -> str:
    """Return ``cpu`` or ``cuda`` for a device as torch calls it."""
    return device.partition(":")[0]


class Stopwatch:
    """Laps by the wall clock on a CPU, by events of the stream on a CUDA device."""

    def __init__(self, device: str) -> None:
        is_cuda = device_kind(device) == "cuda"
        self._launching_seconds: deque[float] = deque(maxlen=_REMEMBERED_LAPS)
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device=device) if is_cuda else None

    def time(self, work: Callable[[], Value]) -> tuple[Value, Callable[[], float]]:
        """Return what ``work`` returns, and its seconds, to be asked for after ``finish``.

        The device is not waited for. It writes the flushed memory for longer than Python takes to launch ``work``, so
        that its queue stays filled, and no lap holds the time that launching takes.
        """
        if self._flush is None:
            began = time.perf_counter()
            result = work()
            seconds = time.perf_counter() - began
            return result, lambda: seconds
        for _ in range(num_flushes(self._launching_seconds)):
            self._flush.zero_()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        began = time.perf_counter()
        result = work()
        self._launching_seconds.append(time.perf_counter() - began)
        last.record()
        return result, lambda: float(first.elapsed_time(last)) * 1e-3

    def finish(self) -> None:
        """Wait for the device."""
        if self._flush is not None:
            torch.cuda.synchronize()


def num_flushes(launching_seconds: Iterable[float]) -> int:
    """Return how often memory is written before a lap: for twice as long as the longest of the last laps to launch."""
    return min(1 + math.ceil(2 * max(launching_seconds, default=0.0) / _FLUSH_SECONDS), _MOST_FLUSHES)


def median_and_spread(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median of at least two repeats, and the distance of their quartiles."""
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return middle, high - low


def rounded(seconds: float) -> float:
    """Return seconds to six digits, which is more than any clock here knows."""
    return float(f"{seconds:.6g}")
