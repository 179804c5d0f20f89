"""HugeCTR's dynamic tables: docs/cost-models.md#dynamic-tables-of-hugectr."""

import math
from collections import Counter

from tests.support.oracle.machine import Machine
from tests.support.oracle.shards import Shard

MODE = "hugectr"
_COUNTERS = 2 * 3 * 128 * 8


def has_maps(shard: Shard) -> bool:
    return shard.table.hash_table.get("mode") == MODE


def lines_of(shard: Shard) -> Counter[str]:
    """Return the bytes of a shard by line, but for its buffers."""
    slots = _slots(shard.stored_rows + math.ceil(shard.n))
    state = _slots(shard.stored_rows + math.ceil(shard.u)) if shard.s else 0
    width = 4 * shard.columns
    return Counter(
        weights=slots * width,
        optimizer_state=state * width * shard.s / 4,
        row_keys=16 * (slots + state) + _COUNTERS,
    )


def find_seconds(machine: Machine, shard: Shard) -> float:
    """Return the seconds in which rows are found; part of ``forward_compute``."""
    moved = shard.n * 4 * (16 + 128 * len(_maps(shard.table.expected_rows)))
    return moved / machine.memory_rate + 4 * machine.numbers.get("kernel_launch_seconds", 0.0)


def _maps(ids: float) -> list[int]:
    """Return the slots of every map that so many ids need."""
    maps: list[int] = []
    while not maps or ids > sum(0.6 * one - 10_000 for one in maps):
        maps.append(2**20 * 2 ** len(maps))
    return maps


def _slots(ids: float) -> int:
    return sum(_maps(ids))
