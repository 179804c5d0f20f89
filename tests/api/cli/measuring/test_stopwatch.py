"""How long a device is kept busy before a lap."""

import pytest

pytest.importorskip("torch")

from api.cli.measuring.stopwatch import num_flushes


def test_the_device_writes_for_longer_than_launching_takes() -> None:
    """Twice the longest of the last laps, 60 us and more for each write; a stall of seconds is no launch."""
    assert num_flushes([]) == 1
    assert num_flushes([90e-6, 300e-6, 120e-6]) == 11
    assert num_flushes([2.0]) == 40
