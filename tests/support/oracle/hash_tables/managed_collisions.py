"""Slots of managed collisions: docs/hash-tables.md#bytes and #prices."""

import math
from collections import Counter
from typing import Any

from tests.support.oracle.machine import Machine
from tests.support.oracle.shards import Shard

MODES = ("zch", "mpzch")
#: Of ``zch``, by eviction: numbers of a slot, bytes of an id in the history, bytes of a lookup without searches,
#: bytes of a slot at an eviction, launches of a step and of an eviction.
_ZCH = {
    "lfu": (1, 8, 1480, 830, 11, 36),
    "lru": (1, 16, 1896, 845, 12, 42),
    "distance_lfu": (2, 16, 2046, 940, 12, 54),
}


def slot_bytes(shard: Shard) -> Counter[str]:
    """Return the bytes of a shard's slots by line."""
    table, y = shard.table, shard.stored_rows
    given = table.hash_table
    if given.get("mode") == "zch":
        numbers, id_bytes, *_ = _ZCH[given["eviction"]]
        history = math.floor(1.25 * shard.n * given["eviction_interval"] * (1 + 1e-12))
        return Counter(slots=y * (16 + 8 * numbers) + 8224, slot_history=history * id_bytes)
    if given.get("mode") == "mpzch":
        expiry = 4 if _evicts(given) else 0
        return Counter(slots=y * (8 + expiry + given.get("metadata_bytes_per_slot", 0)))
    return Counter()


def slot_seconds(machine: Machine, shard: Shard) -> float:
    """Return the seconds in which a step finds and keeps slots; part of ``forward_compute``."""
    given = shard.table.hash_table
    if given.get("mode") not in MODES:
        return 0.0
    if given["mode"] == "zch":
        interval, s = given["eviction_interval"], shard.rows
        *_, of_lookup, of_slot, in_step, in_eviction = _ZCH[given["eviction"]]
        moved = shard.n * (of_lookup + 64 * math.ceil(math.log2(max(s, 2)))) + s * of_slot / interval
        launches = in_step + in_eviction / interval
    else:
        p = _probes(given, shard)
        moved = shard.n * (194 + 12 * (p - 1) if _evicts(given) else 162 + 8 * (p - 1))
        launches = 14.0
    return moved / machine.memory_rate + launches * machine.numbers.get("kernel_launch_seconds", 0.0)


def _evicts(given: dict[str, Any]) -> bool:
    return given.get("eviction", "none") != "none"


def _probes(given: dict[str, Any], shard: Shard) -> float:
    in_use, most = shard.table.expected_rows / shard.table.num_rows, given.get("max_probe", 128)
    return most if in_use == 1 else min(most, (1 + 1 / (1 - in_use)) / 2)
