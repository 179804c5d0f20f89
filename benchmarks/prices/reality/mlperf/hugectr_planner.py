"""HugeCTR's planner of MLPerf DLRM-DCNv2, re-made from its description and its printed plans.

The cost of a piece of a table is its lookups per sample, plus ``mem_comm_bw_ratio / mem_comm_work_ratio`` for the row
that it sends. Pieces go to holders, the costliest first, each to the holder of least cost that has room and no piece
of the table yet. Then the costliest table is halved by rows, and all is tried again; the plan of the least largest
cost stays. Where a piece has no room, the largest table is halved. Holders are GPUs (``auto``) or, with hierarchical
communication, nodes, whose GPUs share the rows of a piece (``hier_auto``). Tables below a size are replicated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MEM_COMM_WORK_RATIO = 4.0
_ROUNDS = 40
_BYTES_PER_ELEMENT = 8  # fp32 weights and their AdaGrad state


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the model."""

    num_rows: int
    num_columns: int
    pooling_factor: float

    @property
    def num_bytes(self) -> float:
        """Bytes of weights and state."""
        return float(self.num_rows * self.num_columns * _BYTES_PER_ELEMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Which holders have a piece of each table; a table with several holders is cut by rows over them."""

    holders: tuple[tuple[int, ...], ...]  # of every table; empty if it is replicated
    is_by_node: bool  # whether a holder is a node, whose GPUs share the rows of its pieces


def planned(
    tables: Sequence[Table],
    *,
    num_holders: int,
    holder_bytes: float,
    mem_comm_bw_ratio: float,
    replicated_below_bytes: float,
    is_by_node: bool,
) -> Holdings | None:
    """Return the plan of the least largest cost; ``None`` if no plan has room."""
    work = mem_comm_bw_ratio / MEM_COMM_WORK_RATIO
    ways = {index: 1 for index, table in enumerate(tables) if table.num_bytes >= replicated_below_bytes}
    best: tuple[float, list[list[int]]] | None = None
    for _ in range(_ROUNDS):
        placed = _placed(tables, ways, num_holders, holder_bytes, work)
        if placed is not None and (best is None or placed[0] < best[0] - 1e-9):
            best = placed
        left = [index for index in ways if 2 * ways[index] <= num_holders]
        if not left:
            break
        costs = {index: tables[index].pooling_factor / ways[index] + work for index in left}
        sizes = {index: tables[index].num_bytes / ways[index] for index in left}
        largest = max(left, key=(sizes if placed is None else costs).__getitem__)
        ways[largest] *= 2
    if best is None:
        return None
    return held_as(best[1], len(tables), is_by_node=is_by_node)


def held_as(listed: Sequence[Sequence[int]], num_tables: int, *, is_by_node: bool = False) -> Holdings:
    """Return the holdings of a matrix that lists the tables of every holder; tables in no list are replicated."""
    holders: list[list[int]] = [[] for _ in range(num_tables)]
    for holder, tables in enumerate(listed):
        for table in tables:
            holders[table].append(holder)
    return Holdings(holders=tuple(tuple(one) for one in holders), is_by_node=is_by_node)


def _placed(
    tables: Sequence[Table], ways: dict[int, int], num_holders: int, holder_bytes: float, work: float
) -> tuple[float, list[list[int]]] | None:
    """Place the pieces; return the largest cost and the tables of each holder, or ``None`` if one has no room."""
    pieces = [
        (tables[index].pooling_factor / count + work, index) for index, count in ways.items() for _ in range(count)
    ]
    costs, sizes = [0.0] * num_holders, [0.0] * num_holders
    listed: list[list[int]] = [[] for _ in range(num_holders)]
    for cost, index in sorted(pieces, reverse=True):
        num_bytes = tables[index].num_bytes / ways[index]
        free = [
            holder
            for holder in range(num_holders)
            if index not in listed[holder] and sizes[holder] + num_bytes <= holder_bytes
        ]
        if not free:
            return None
        holder = min(free, key=lambda one: (costs[one], one))
        costs[holder] += cost
        sizes[holder] += num_bytes
        listed[holder].append(index)
    return max(costs), listed
