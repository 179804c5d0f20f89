"""Hash tables as TorchRec has them."""

from dataclasses import replace
from typing import Any

from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.table import Table
from tests.support.planning.builders import make_table


def zch(expected: int, eviction: str = "lfu", interval: int = 5) -> HashTable:
    """Sorted ids, evicted every few steps."""
    return HashTable(mode="zch", eviction=eviction, expected_rows=expected, eviction_interval=interval)


def mpzch(expected: int, eviction: str = "none", **fields: Any) -> HashTable:
    """Probed slots, 128 of them at most."""
    return HashTable(mode="mpzch", eviction=eviction, expected_rows=expected, **{"max_probe": 128} | fields)


def hash_table(name: str, slots: int, found: HashTable, *, columns: int = 16, **fields: Any) -> Table:
    """A table of a module of its own, with row-wise AdaGrad unless otherwise given."""
    table = make_table(name, slots, columns, **{"optimizer": "rowwise_adagrad", "module_path": f"m.{name}"} | fields)
    return replace(table, hash_table=found)
