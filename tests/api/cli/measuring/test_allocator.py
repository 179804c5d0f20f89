"""Measured laps find the memory that laps before them have freed."""

import subprocess
import sys

import pytest

from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

pytest.importorskip("torch")

#: Page faults of writing 40 MiB for the tenth time: with memory given back in between, and kept.
PROGRAM = """
import resource, sys
import torch
from api.cli.measuring.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(40 * 2**20, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
given_back = [faults() for _ in range(10)][-1]
told = keep_freed_memory()
kept = [faults() for _ in range(10)][-1]
print(told, given_back, kept)
"""


@thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other C libraries are not told")
def test_freed_memory_is_preserved() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    reported, given_back, preserved = found.stdout.split()
    if reported == "False":
        pytest.skip("this C library cannot be told to keep freed memory")
    assert int(preserved) < 16
    assert int(given_back) > int(preserved)
