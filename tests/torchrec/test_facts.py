"""What a rank finds out of the memory that is free for it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch

from api.client.torchrec import read_memory
from api.client.torchrec.facts import host_bytes

pytestmark = pytest.mark.torchrec

GIB = 1 << 30


def machine(folder: Path, **control_group: str) -> tuple[Path, Path]:
    """Files of the kernel: 100 GiB, 64 of them free, and a control group."""
    information = folder / "meminfo"
    information.write_text(
        f"MemTotal: {100 << 20} kB\nMemFree: 1 kB\nMemAvailable: {64 << 20} kB\nHugePages_Total: 0\n"
    )
    for name, text in control_group.items():
        (folder / name.replace("_", ".")).write_text(text)
    return information, folder


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert host_bytes(*machine(tmp_path)) == (64 * GIB, 100 * GIB)
    assert host_bytes(*machine(tmp_path, memory_max="max\n")) == (64 * GIB, 100 * GIB)


def test_a_container_with_less_than_its_machine(tmp_path: Path) -> None:
    # 40 GiB allowed, 30 used, of which 10 are caches of files: 20 are free
    limits = {"memory_max": f"{40 * GIB}\n", "memory_current": f"{30 * GIB}\n"}
    files = machine(tmp_path, **limits, memory_stat=f"anon 7\ninactive_file {10 * GIB}\n")
    assert host_bytes(*files) == (20 * GIB, 40 * GIB)


def test_a_container_with_more_than_its_machine(tmp_path: Path) -> None:
    limits = {"memory_max": f"{400 * GIB}", "memory_current": "0", "memory_stat": "inactive_file 0"}
    assert host_bytes(*machine(tmp_path, **limits)) == (64 * GIB, 100 * GIB)


def test_on_cpu_the_device_is_the_host() -> None:
    found = read_memory("cpu")
    assert found.device_pool == found.host_pool
    assert 0 < found.device_free_bytes <= found.device_total_bytes
    assert (found.host_free_bytes, found.host_total_bytes) == (found.device_free_bytes, found.device_total_bytes)


def test_on_cuda_what_torch_keeps_for_tensors_to_come_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (index * GIB, 80 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda index: 5 * GIB)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda index: 4 * GIB)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=f"uuid-{index}"))
    found = read_memory("cuda")
    assert (found.device_free_bytes, found.device_total_bytes) == (4 * GIB, 80 * GIB)
    assert found.device_pool == f"GPU uuid-3 of {found.host_pool}"
    assert found.host_free_bytes > 0


def test_other_devices_are_the_launchers_to_read() -> None:
    with pytest.raises(ValueError, match="cannot read what is free on mtia; give free_memory"):
        read_memory("mtia")
