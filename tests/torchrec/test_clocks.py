"""The clock of a processor, and names as rows of benchmarks have them."""

import time

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch

from api.cli.measuring.embeddings import best_implementation
from api.cli.measuring.machine import this_machine
from api.client.device_names import fbgemm_library
from api.client.torchrec.clocks import Clock, device_name

pytestmark = pytest.mark.torchrec
CPU = torch.device("cpu")


def test_seconds_are_those_that_passed() -> None:
    before = time.perf_counter()
    clock = Clock(CPU)
    begin = clock.now()
    time.sleep(0.02)
    passed = clock.seconds(begin, clock.now())
    assert 0.02 <= passed <= time.perf_counter() - before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_seconds_of_a_stream_are_those_of_its_work() -> None:
    clock = Clock(torch.device("cuda"))
    begin = clock.now()
    torch.cuda._sleep(10_000_000)  # noqa: SLF001  # cycles: some milliseconds of any clock rate
    end = clock.now()
    assert clock.seconds(begin, end) > 1e-3


@pytest.mark.parametrize("ranks", [1, 2])
def test_names_are_those_of_benchmarks(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        assert device_name(torch.device("cuda")) == this_machine().name
        return
    torchrun = {"RANK": 0, "WORLD_SIZE": ranks, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "localhost"}
    for name, value in torchrun.items():
        monkeypatch.setenv(name, str(value))
    assert device_name(CPU) == this_machine().name
    assert fbgemm_library() == best_implementation().library
