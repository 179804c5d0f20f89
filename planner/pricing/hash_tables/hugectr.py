r"""HugeCTR's dynamic embedding tables: maps of weights and of optimizer state, which grow map by map.

A GPU that has part of such a table (``max_vocabulary_size`` -1) has a list of maps of its weights: the first has
1,048,576 slots, each one after it twice as many as the one before. A slot takes its weights, and a key with a lock: 16
bytes, whose alignment is that of the pair [1]. Before every lookup a list gets maps until they have room for all ids
that are there and for all that are looked up, as if each of these were new:

.. math:: \sum_i (0.6\,c_i - 10{,}000) \ge \mathrm{ids} + \mathrm{lookups}

Ids keep their slots, no map is ever copied, and none is given back [2]. An optimizer with state has a second list, of
as many numbers as it keeps for each weight, in which the distinct ids of a step are looked up [3]; that of SGD stays
empty. Both lists have three counters of 8 bytes for each of 128 maps on the GPU.

No measurement of these kernels is public. Prices are bytes: four threads look a key up in map after map, and read a
window of four slots (64 bytes) at a time, two of them in a map that is filled to 0.6; in training the optimizer and the
update look every distinct id up again, which is charged for every lookup.

References
----------
NVIDIA-Merlin/HugeCTR 2f2016f, ``third_party/dynamic_embedding_table`` and ``HugeCTR/embedding_storage``.

.. [1] ``static_map.cuh`` (``pair_atomic_type``), ``detail/pair.cuh`` (``pair_alignment``), ``detail/lock.cuh``.
.. [2] ``detail/dynamic_map.inl``: ``dynamic_map``, ``reserve``, ``lookup_unsafe``; ``dynamic_embedding_table.hpp``:
   ``initial_capacity_for_class``.
.. [3] ``dynamic_embedding.cu``: ``DynamicEmbeddingTable``, ``update``.
"""

from collections.abc import Mapping

import numpy as np

from cost_models.analytic.sizes import distinct_rows
from cost_models.arrays import Floats, Ints
from cost_models.protocol import ShardWork
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.problem import Problem
from planner.pricing.hash_tables.slot_costs import SlotCosts
from planner.solver.memo import memoized_on_problem

MODE = "hugectr"
FIRST_MAP_SLOTS = 2.0**20
MAX_LOAD_FACTOR = 0.6
#: Slots that a map keeps free, below which nothing is inserted (``min_insert_size_``).
SPARE_SLOTS = 1e4
MAX_MAPS = 128
KEY_BYTES = 16.0  # int64 and a lock
COUNTER_BYTES = 3.0 * MAX_MAPS * 8
WEIGHT_BYTES = 4.0  # fp32, of weights and of state
WINDOW_BYTES = 64.0
WINDOWS_OF_MAP = 2.0
#: Key read and pointer written.
KEY_AND_POINTER_BYTES = 16.0
#: Of a step: the lookup; of the optimizer that of its state, the update and that of the weights.
FORWARD_LAUNCHES, BACKWARD_LAUNCHES = 1.0, 3.0
#: Maps that are counted: more than there are ids for.
MOST_MAPS = 40
_MAPS = np.arange(1, MOST_MAPS + 1)
#: Ids that so many maps have room for, and their slots.
_ROOM = np.cumsum(MAX_LOAD_FACTOR * FIRST_MAP_SLOTS * 2.0 ** (_MAPS - 1) - SPARE_SLOTS)
_SLOTS = FIRST_MAP_SLOTS * (2.0**_MAPS - 1)


def room_of_maps(number: int) -> float:
    """Return how many ids so many maps have room for."""
    return float(_ROOM[number - 1])


def slots_of_maps(number: int) -> float:
    """Return the slots of so many maps."""
    return float(_SLOTS[number - 1])


def num_maps(ids: Floats) -> Ints:
    """Return the maps that have room for so many ids."""
    found: Ints = np.searchsorted(_ROOM, ids, side="left") + 1
    return found


def map_slots(ids: Floats) -> Floats:
    """Return the slots of maps that have room for so many ids."""
    slots: Floats = _SLOTS[num_maps(ids) - 1].astype(np.float64)
    return slots


def map_costs(hash_table: HashTable, num_slots: int, slots_of_shard: int) -> SlotCosts:
    """Return what finding rows costs; the bytes of maps are :func:`mapped_bytes`."""
    del num_slots, slots_of_shard
    searched = float(num_maps(np.array([float(hash_table.expected_rows)]))[0]) * WINDOWS_OF_MAP * WINDOW_BYTES
    return SlotCosts(
        bytes_per_slot=0.0,
        bytes_per_shard=0.0,
        history_numbers_per_lookup=0.0,
        history_number_bytes=0.0,
        lookup_bytes=(1 + BACKWARD_LAUNCHES) * (searched + KEY_AND_POINTER_BYTES),
        upkeep_bytes_per_slot=0.0,
        launches=FORWARD_LAUNCHES + BACKWARD_LAUNCHES,
    )


@memoized_on_problem
def is_mapped(problem: Problem) -> Floats:
    """Return 1 for each table whose rows lie in maps, (num_tables,)."""
    return np.array([table.hash_table_mode == MODE for table in problem.tables], dtype=np.float64)


def mapped_bytes(work: ShardWork, stored_rows: Ints) -> Mapping[str, Floats]:
    """Return the bytes of each shard as if it were a dynamic table, by line, (num_shards,) each.

    ``stored_rows`` are the ids that are expected on the shard.
    """
    state_numbers = work.optimizer_element_bytes / WEIGHT_BYTES
    ids = stored_rows.astype(np.float64)
    slots = map_slots(ids + np.ceil(work.lookups))
    state_slots = np.where(state_numbers > 0, map_slots(ids + np.ceil(distinct_rows(work))), 0.0)
    row = work.shard_columns * WEIGHT_BYTES
    return {
        "weights": slots * row,
        "optimizer_state": state_slots * row * state_numbers,
        "row_keys": (slots + state_slots) * KEY_BYTES + 2 * COUNTER_BYTES,
    }
