"""Slots of all tables as columns, for the ledger and for prices; each mode has a function in ``MODES``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.protocol import ShardWork
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.problem import Problem
from planner.pricing.hash_tables.hugectr import MODE as HUGECTR
from planner.pricing.hash_tables.hugectr import map_costs
from planner.pricing.hash_tables.managed_collisions import mpzch_costs, zch_costs
from planner.pricing.hash_tables.slot_costs import NO_SLOTS, SlotCosts
from planner.solver.memo import memoized_on_problem

#: Costs of the slots of a table by mode, from the hash table, its slots, and the most slots of one shard.
MODES: Mapping[str, Callable[[HashTable, int, int], SlotCosts]] = MappingProxyType(
    {"zch": zch_costs, "mpzch": mpzch_costs, HUGECTR: map_costs}
)
#: Lines of the ledger: ``slots`` are ids of slots with all that is kept of each, ``slot_history`` the ids that came
#: since the last eviction.
SLOT_LINES = ("slots", "slot_history")
_ROUNDING = 1e-12  # relative, of products of a few numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotColumns:
    """The numbers of :class:`SlotCosts`, one entry per table, shape (num_tables,); 0 of tables without slots."""

    bytes_per_slot: Floats
    bytes_per_shard: Floats
    history_numbers_per_lookup: Floats
    history_number_bytes: Floats
    lookup_bytes: Floats
    upkeep_bytes_per_slot: Floats
    launches: Floats


@memoized_on_problem
def slot_columns(problem: Problem) -> SlotColumns:
    """Return the slots of every table; hash tables are cut by rows over all ranks."""
    names = [field.name for field in fields(SlotColumns)]
    if not has_slots(problem):  # as of nearly every model, which may have thousands of tables
        none = np.zeros(len(problem.tables))
        return SlotColumns(**dict.fromkeys(names, none))
    costs = [
        NO_SLOTS
        if table.hash_table is None or table.hash_table.mode not in MODES
        else MODES[table.hash_table.mode](
            table.hash_table, table.num_embeddings, -(-table.num_embeddings // problem.world_size)
        )
        for table in problem.tables
    ]
    return SlotColumns(**{name: np.array([getattr(one, name) for one in costs], dtype=np.float64) for name in names})


@memoized_on_problem
def has_slots(problem: Problem) -> bool:
    """Return whether the slots of any table are found ahead of its rows; kernels of dynamicemb find rows themselves."""
    return any(table.hash_table_mode in MODES for table in problem.tables)


def slot_bytes(problem: Problem, work: ShardWork, *, table: Ints, stored_rows: Ints) -> dict[str, Floats]:
    """Return the bytes of each shard by the lines ``SLOT_LINES``; all of them lie in the device's memory."""
    columns = slot_columns(problem)
    held = stored_rows * columns.bytes_per_slot[table] + columns.bytes_per_shard[table]
    history = np.floor(work.lookups * columns.history_numbers_per_lookup[table] * (1 + _ROUNDING))
    return {"slots": held, "slot_history": history * columns.history_number_bytes[table]}
