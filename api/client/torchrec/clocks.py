"""What a job's phases are timed with, and on: the clock of its device, and the device's name."""

import os
import time
from typing import Any, Protocol

import torch

from ..device_names import cpu_name, device_text


class Clock(Protocol):
    """Moments, and the seconds between two of them, which are read later: no step waits for its clock."""

    def now(self) -> Any:
        """Return this moment."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Return the seconds from one moment to another."""


class HostClock:
    """The processor's own; on it work is done when its call returns."""

    def now(self) -> float:
        """Return this moment."""
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        """Return the seconds from one moment to another."""
        return end - begin


class StreamClock:
    """Events on the stream that is current where they are recorded: moments of the device, not of its host."""

    def now(self) -> torch.cuda.Event:
        """Return the moment at which the device comes to what follows."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Wait until the device has passed both, and return the seconds between them."""
        begin.synchronize()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3


def clock_for(device: torch.device) -> Clock:
    """Return the clock of a device."""
    return StreamClock() if device.type == "cuda" else HostClock()


def device_name(device: torch.device) -> str:
    """Return the name of a device, as ``shardplan measure`` writes it into rows that are learned from together."""
    if device.type == "cuda":
        return device_text(torch.cuda.get_device_properties(device).name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
    return device_text(f"{cpu_name()}, {threads} of {cores} cores")
