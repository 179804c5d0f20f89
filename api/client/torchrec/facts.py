"""What this rank knows of itself: its place in the job, and the bytes that are free here now."""

import os
import platform
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torchrec
from torch import nn
from torchrec.distributed.comm import get_local_size, get_topology_group_world_size

from ..job import RankFacts
from ..live_table import LiveTable, fingerprint
from ..memory import MemoryFacts
from .model import dense_parameters

#: How many hosts TorchRec takes for one, as a pod; each rank reads it.
POD_VARIABLE = "TORCHREC_RESOLVED_POD_SIZE"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MEMORY_INFORMATION = Path("/proc/meminfo")
#: Where control groups, version 2, limit the memory of a container.
_CONTROL_GROUP = Path("/sys/fs/cgroup")

#: Finds out what is free for this rank: takes the device type, as ``cuda``.
MemoryProbe = Callable[[str], MemoryFacts]


def rank_facts(
    module: nn.Module,
    tables: tuple[LiveTable, ...],
    *,
    device: str,
    group: dist.ProcessGroup,
    ranks_per_host: int | None,
    sharding_group_size: int | None,
    contiguous_groups: bool,
    expected_digest: str | None,
    memory: MemoryProbe,
) -> RankFacts:
    """Read everything that the other ranks are sent of this one."""
    size = dist.get_world_size(group)
    local_ranks = get_local_size(size) if ranks_per_host is None else ranks_per_host
    found = memory(device)
    resident = sum(p.numel() * p.element_size() for p in dense_parameters(module) if p.device.type == device)
    return RankFacts(
        group_size=size,
        sharding_group_size=sharding_group_size or size,
        contiguous_groups=contiguous_groups,
        ranks_per_host=local_ranks,
        pod_ranks=pod_ranks(size),
        machine=_machine(),
        host_name=platform.node(),
        device=device,
        torchrec=torchrec.__version__,
        fingerprint=fingerprint(tables),
        expected_digest=expected_digest,
        resident_dense_bytes=resident,
        memory=found,
        local_world_size=get_local_size(size),
        states_groups=sharding_group_size is not None,
        states_ranks_per_host=ranks_per_host is not None,
    )


def pod_ranks(world_size: int) -> int | None:
    """Return the ranks of a pod as TorchRec counts them; ``None`` if no setting joins hosts to pods."""
    return get_topology_group_world_size(world_size) if POD_VARIABLE in os.environ else None


def read_memory(device: str) -> MemoryFacts:
    """Return what is free on the current device and on its host.

    Bytes that this process keeps for tensors to come count as free. On CPU the shards live in
    the host's memory, which all ranks of the host share.
    """
    host = platform.node()
    host_free, host_total = host_bytes()
    free, total, pool = host_free, host_total, host
    if device == "cuda":
        index = torch.cuda.current_device()
        free, total = torch.cuda.mem_get_info(index)
        free += torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)
        pool = f"GPU {torch.cuda.get_device_properties(index).uuid} of {host}"
    elif device != "cpu":
        raise ValueError(f"cannot read what is free on {device}; give free_memory")
    return MemoryFacts(
        device_pool=pool,
        device_free_bytes=free,
        device_total_bytes=total,
        host_pool=host,
        host_free_bytes=host_free,
        host_total_bytes=host_total,
    )


def _machine() -> str:
    """Containers of one machine have the same; where the kernel has none, the name must do."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else platform.node()


def host_bytes(information: Path = _MEMORY_INFORMATION, control_group: Path = _CONTROL_GROUP) -> tuple[int, int]:
    """Return free and all bytes of the host, or of the container where that has less."""
    lines = [line.split() for line in information.read_text().splitlines()]
    kib = {words[0].rstrip(":"): int(words[1]) for words in lines}
    free, total = kib["MemAvailable"] << 10, kib["MemTotal"] << 10
    limit = control_group / "memory.max"
    if limit.exists() and limit.read_text().strip() != "max":
        allowed = int(limit.read_text())
        statistics = dict(line.split() for line in (control_group / "memory.stat").read_text().splitlines())
        used = int((control_group / "memory.current").read_text())
        held = used - int(statistics["inactive_file"])  # caches of files give way
        free, total = min(free, allowed - held), min(total, allowed)
    return free, total
