"""Stacks of tables that SparseCores look up as one: which tables, in which order, turned by how many SparseCores.

The library stacks tables of equal padded width, optimizer and pooling while the pools of a SparseCore's samples are at
most 2 MiB (``lib/nn/table_stacking.py`` of jax-tpu-embedding 0.1.0: ``auto_stack_tables``), the first fit in the order
of the tables. The same is done here, but tables whose accesses are not known stay apart: a stack has one limit, and one
such table would leave all others without.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.options.runtimes.sparsecore.geometry import MAX_ROW_NUMBER, Cores
from planner.options.runtimes.sparsecore.id_limits import Lookups, peak_load

MAX_ACTIVATION_BYTES = 2 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedTable:
    """What decides in which stack a table is."""

    name: str
    padded_rows: int
    padded_columns: int
    optimizer: str
    combiner: str | None
    outputs_per_core: float  # pools of a SparseCore in a step
    lookups: Lookups | None  # None where nothing is known of its accesses
    no_lookups: str = ""  # why, then

    @property
    def activation_bytes(self) -> float:
        """Bytes of a SparseCore's pools."""
        return 4 * self.padded_columns * self.outputs_per_core


def stacks_of(tables: Sequence[StackedTable]) -> list[list[StackedTable]]:
    """Return the tables in stacks, the first fit."""
    stacks: dict[tuple[object, ...], list[list[StackedTable]]] = {}
    for table in tables:
        key = (table.padded_columns, table.optimizer, table.combiner, table.lookups is None)
        alike = stacks.setdefault(key, [])
        fitting = next((stack for stack in alike if _fits(stack, table)), None)
        if fitting is None:
            alike.append([table])
        else:
            fitting.append(table)
    return [stack for alike in stacks.values() for stack in alike]


def _fits(stack: Sequence[StackedTable], table: StackedTable) -> bool:
    activations = sum(one.activation_bytes for one in stack) + table.activation_bytes
    rows = sum(one.padded_rows for one in stack) + table.padded_rows
    return activations <= MAX_ACTIVATION_BYTES and rows <= MAX_ROW_NUMBER


def best_rotation(lookups: Sequence[Lookups], cores: Cores) -> int:
    """Return the rotation from table to table with the least ids in the fullest partition, were ids sorted by heat.

    The library's own, which is tried first, turns by a device, and meets the first table again after as many tables as
    there are devices.
    """
    tried = dict.fromkeys((cores.cores_per_device, 1, max(cores.num // len(lookups), 1)))
    return min(tried, key=lambda rotation: peak_load(turned(lookups, rotation, cores.num), cores.num))


def turned(lookups: Sequence[Lookups], rotation: int, num_cores: int) -> list[Lookups]:
    """Return the lookups of a stack with the rotation of each table."""
    return [replace(one, rotation=number * rotation % num_cores) for number, one in enumerate(lookups)]
