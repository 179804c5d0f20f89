"""The clock that times a job's phases on its device, and the device's name."""

import os
import time
from typing import Any

import torch

from ..device_names import cpu_name, device_text


class Clock:
    """Moments of a device, and the seconds between two of them, which are read later: no step waits for its clock.

    A moment of a GPU is an event on the current stream: when the device, and not its host, comes to what follows.
    """

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"

    def now(self) -> Any:
        if not self._is_cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        """Return the seconds from one moment to another; waits until a GPU has passed both."""
        if not self._is_cuda:
            return float(end - begin)
        begin.synchronize()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3


def device_name(device: torch.device) -> str:
    """Return the name of a device, as ``shardplan measure`` writes it into rows that are learned from together."""
    if device.type == "cuda":
        return device_text(torch.cuda.get_device_properties(device).name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(cores // int(os.environ.get("LOCAL_WORLD_SIZE") or "1"), 1)
    return device_text(f"{cpu_name()}, {threads} of {cores} cores")
