"""Waits for what must come. Only a failure lasts as long as the patience, so that no test fails on a slow machine."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 600.0


def wait_until(condition: Callable[[], T], pause_seconds: float = 0.02) -> T:
    """Return the first true value of a condition; fail after ``PATIENCE_SECONDS``."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(pause_seconds)
    return value
