"""Times of work on a device, their median, and how far the repeats lie apart."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

Value = TypeVar("Value")
#: More than the level-2 cache of any accelerator: written before every lap, so that none finds its rows there.
_FLUSH_BYTES = 256 * 1024 * 1024


class Stopwatch:
    """Laps by the wall clock on a CPU, by events of the stream on a CUDA device."""

    def __init__(self, device: str) -> None:
        is_cuda = device.startswith("cuda")
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device=device) if is_cuda else None

    def time(self, work: Callable[[], Value]) -> tuple[Value, Callable[[], float]]:
        """Return what ``work`` returns, and its seconds, to be asked for after ``finish``.

        The device is not waited for: its queue stays filled, and no lap holds the time that Python takes.
        """
        if self._flush is None:
            began = time.perf_counter()
            result = work()
            seconds = time.perf_counter() - began
            return result, lambda: seconds
        self._flush.zero_()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        result = work()
        last.record()
        return result, lambda: float(first.elapsed_time(last)) * 1e-3

    def finish(self) -> None:
        """Wait for the device."""
        if self._flush is not None:
            torch.cuda.synchronize()


def median_and_spread(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median of at least two repeats, and the distance of their quartiles."""
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return middle, high - low


def rounded(seconds: float) -> float:
    """Return seconds to six digits, which is more than any clock here knows."""
    return float(f"{seconds:.6g}")
