r"""TorchRec's managed collisions: bytes of their modules' buffers, and bytes that a step moves to find slots.

``zch`` keeps the ids of a rank's slots sorted, next to each id its place, and one int64 number per slot for each thing
that the eviction policy knows: how often an id came, when it came last. A table of segments has 1,025 int64 numbers,
and three more stand alone. Ids of steps since the last eviction wait in a history of 1.25 times as many as came
in the first step, each with when it came, if the policy asks for that [1].

``mpzch`` keeps the id of every slot and, if it evicts, an int32 number; the model may keep more of each [2]. Numbers
of buckets lie in host memory, 8 bytes and 16 for every bucket, and are not counted.

Times are estimates: bytes that the operations of a step read and write, counted operation by operation on real modules
(the tests do it again), at the rate of the memory; sectors of 32 bytes for numbers read here and there; 8 passes of a
radix sort of 8-byte keys and 8-byte places. They are not measured.

- ``zch``, of ``n`` lookups among ``S`` slots: a binary search reads :math:`\log_2 S` sectors for each id. Evictions,
  every ``k`` steps, find the distinct ids of the history, search them, sort the scores of slots and history together,
  and sort the ids again with all that is known of them.
- ``mpzch`` with a share :math:`\alpha` of its slots in use tries :math:`(1 + 1 / (1 - \alpha)) / 2` slots for an id,
  at most ``max_probe``: linear probing [3].

References
----------
.. [1] TorchRec 1.8.0 ``modules/mc_modules.py``: ``_init_buffers``, ``_init_metadata_buffers``,
   ``_init_history_buffers``.
.. [2] TorchRec 1.8.0 ``modules/hash_mc_modules.py``, FBGEMM 1.8.0 ``create_zch_buffer``.
.. [3] Knuth, The Art of Computer Programming, volume 3, 6.4, a search that succeeds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.domain.problem.hash_table import HashTable
from planner.pricing.hash_tables.slot_costs import SlotCosts

NUMBER_BYTES = 8.0  # int64
SECTOR_BYTES = 32.0
#: An id and its place, of ``zch``.
ZCH_SLOT_BYTES = 2 * NUMBER_BYTES
#: Segments, and the numbers of steps, of slots and of no id.
ZCH_SHARD_BYTES = (1025 + 3) * NUMBER_BYTES
HISTORY_SHARE = 1.25
#: Of ``mpzch``: the time at which an id may lose its slot.
EXPIRY_BYTES = 4.0


#: Of ``mpzch``, a lookup: ids and places read and written, its bucket and that bucket's place, its place in the table.
MPZCH_LOOKUP_BYTES = 130.0
MPZCH_LAUNCHES = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    """An eviction policy of ``zch``: what it keeps, and what a step and an eviction do with that.

    Bytes are those that are read and written, without binary searches.
    """

    slot_numbers: int
    history_numbers: int  # in addition to the id
    lookup_bytes: float  # of every step
    launches: float  # of every step
    eviction_bytes_per_id: float  # of the history
    eviction_bytes_per_slot: float
    eviction_launches: float


_POLICIES: Mapping[str, _Policy] = MappingProxyType(
    {
        "lfu": _Policy(
            slot_numbers=1,
            history_numbers=0,
            lookup_bytes=230.0,
            launches=11.0,
            eviction_bytes_per_id=1250.0,
            eviction_bytes_per_slot=830.0,
            eviction_launches=36.0,
        ),
        "lru": _Policy(
            slot_numbers=1,
            history_numbers=1,
            lookup_bytes=246.0,
            launches=12.0,
            eviction_bytes_per_id=1650.0,
            eviction_bytes_per_slot=845.0,
            eviction_launches=42.0,
        ),
        "distance_lfu": _Policy(
            slot_numbers=2,
            history_numbers=1,
            lookup_bytes=246.0,
            launches=12.0,
            eviction_bytes_per_id=1800.0,
            eviction_bytes_per_slot=940.0,
            eviction_launches=54.0,
        ),
    }
)


def zch_costs(hash_table: HashTable, num_slots: int, slots_of_shard: int) -> SlotCosts:
    """Return the costs of a table of ``num_slots`` slots, of which a shard has at most ``slots_of_shard``."""
    del num_slots
    policy, interval = _POLICIES[hash_table.eviction], hash_table.eviction_interval or 1
    search_bytes = SECTOR_BYTES * math.ceil(math.log2(max(slots_of_shard, 2)))
    return SlotCosts(
        bytes_per_slot=ZCH_SLOT_BYTES + policy.slot_numbers * NUMBER_BYTES,
        bytes_per_shard=ZCH_SHARD_BYTES,
        history_numbers_per_lookup=HISTORY_SHARE * interval,
        history_number_bytes=(1 + policy.history_numbers) * NUMBER_BYTES,
        lookup_bytes=policy.lookup_bytes + policy.eviction_bytes_per_id + 2 * search_bytes,
        upkeep_bytes_per_slot=policy.eviction_bytes_per_slot / interval,
        launches=policy.launches + policy.eviction_launches / interval,
    )


def mpzch_costs(hash_table: HashTable, num_slots: int, slots_of_shard: int) -> SlotCosts:
    """Return the costs of a table of ``num_slots`` slots, of which a shard has at most ``slots_of_shard``."""
    del slots_of_shard
    most, free = hash_table.max_probe or num_slots, 1 - hash_table.expected_rows / num_slots
    probes = min(float(most), (1 + 1 / free) / 2) if free > 0 else float(most)
    expiry_bytes = EXPIRY_BYTES if hash_table.evicts else 0.0
    probed = 2 * SECTOR_BYTES if hash_table.evicts else SECTOR_BYTES
    return SlotCosts(
        bytes_per_slot=NUMBER_BYTES + expiry_bytes + hash_table.metadata_bytes_per_slot,
        bytes_per_shard=0.0,
        history_numbers_per_lookup=0.0,
        history_number_bytes=0.0,
        lookup_bytes=MPZCH_LOOKUP_BYTES + probed + (probes - 1) * (NUMBER_BYTES + expiry_bytes),
        upkeep_bytes_per_slot=0.0,
        launches=MPZCH_LAUNCHES,
    )
