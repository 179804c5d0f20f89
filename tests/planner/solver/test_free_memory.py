import ctypes
from pathlib import Path

import numpy as np
import pytest

from planner.solver.machine import return_free_memory

_STATUS = Path("/proc/self/status")


def resident_kibibytes() -> int:
    return next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith("VmRSS:"))


def test_what_was_freed_between_columns_in_use_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("this C library keeps what is freed")
    columns = [np.ones(12_000) for _ in range(800)]  # of 96 kB each, which come from the heap
    del columns[::2]
    before = resident_kibibytes()
    return_free_memory()
    assert before - resident_kibibytes() > 20_000
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    return_free_memory()
