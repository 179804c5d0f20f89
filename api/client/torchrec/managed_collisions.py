"""What a module of managed collisions says of how its ids become slots."""

import logging
from typing import Any

from torch import nn

from ..live_table import LiveHashTable

log = logging.getLogger(__name__)

#: Eviction policies of ``MCHManagedCollisionModule`` by class, and ours.
_POLICIES = {"LFU_EvictionPolicy": "lfu", "LRU_EvictionPolicy": "lru", "DistanceLFU_EvictionPolicy": "distance_lfu"}
_EVICTION = "_EVICTION"  # ends names of eviction policies of ``HashZchManagedCollisionModule``
_NUMBER_BYTES = 8  # int64


def live_hash_table(module: nn.Module, table: str) -> LiveHashTable | str:
    """Return how the ids of a table become slots, or why that cannot be planned.

    Classes are known by name, so that nothing is imported that the model does not use.
    """
    collisions: Any = module
    found: Any = collisions._managed_collision_collection._managed_collision_modules[table]  # noqa: SLF001
    kind = type(found).__name__
    if kind == "MCHManagedCollisionModule":
        return _zch(found, table)
    if kind == "HashZchManagedCollisionModule":
        return _mpzch(found)
    return (
        f"has a {kind}, which cannot be planned; only MCHManagedCollisionModule and HashZchManagedCollisionModule can"
    )


def _zch(found: Any, table: str) -> LiveHashTable | str:
    policy = type(found._eviction_policy).__name__  # noqa: SLF001
    if policy not in _POLICIES:
        return f"has the eviction policy {policy}, of which the bytes are not known; known: {', '.join(_POLICIES)}"
    if found._input_hash_func is None and found.input_size():  # noqa: SLF001
        log.warning(
            'ids of table "%s" go to ranks by the part of 0 to %d that they lie in, and no input_hash_func spreads'
            " them: plans take them for spread",
            table,
            found.input_size(),
        )
    return LiveHashTable(
        mode="zch",
        eviction=_POLICIES[policy],
        eviction_interval=found._eviction_interval,  # noqa: SLF001
    )


def _mpzch(found: Any) -> LiveHashTable | str:
    buckets, slots = found.buckets(), found.output_size()
    if slots % buckets:
        return f"has {slots} slots in {buckets} buckets of unequal sizes"
    policy = found._eviction_policy_name  # noqa: SLF001
    return LiveHashTable(
        mode="mpzch",
        eviction="none" if policy is None else policy.value.removesuffix(_EVICTION).lower(),
        bucket_size=slots // buckets,
        max_probe=found.max_probe,
        metadata_bytes_per_slot=_NUMBER_BYTES * (int(found._track_id_freq) or found._write_runtime_meta_dim),  # noqa: SLF001
    )
