"""What moves from one placement to another, counted from their rectangles alone.

Shares no code with the search, which counts the same bytes in arrays; the pipeline compares the two.

A byte of a table is a cell with its share of the row: weights, optimizer state of the cell, and of the row spread
evenly over its columns. A rank fetches the cells that its new shards have and its old ones lack. Each
comes from the one rank that holds it; of several copies, from the first on the same host (or pod), else the first.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.hardware.hardware import Quantity
from cost_models.hardware.laws.domain_law import Basis
from cost_models.vocabulary import Evidence
from planner.domain.plan.movement import RankPair
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that do not move, that no rank had before, and that travel from rank to rank."""

    unmoved_bytes: float
    new_bytes: float
    pairs: tuple[RankPair, ...]

    @property
    def moved_bytes(self) -> float:
        """Bytes of all pairs."""
        return sum(pair.bytes for pair in self.pairs)


def cell_bytes(table: Table, before: TablePlacement | None) -> float:
    """Return the bytes that move with one cell of a table: weights are in the type that they have before they move."""
    stated = before is not None and DATA_TYPES.get(before.data_type)
    data_type = stated or table.data_type
    per_row = data_type.row_overhead_bytes + table.optimizer.row_bytes
    return data_type.element_bytes + table.optimizer.element_bytes + per_row / table.embedding_dim


def same_table(table: Table, before: TablePlacement) -> bool:
    """Whether a placement is of this table's rows and columns, in a type that its weights may have."""
    rows, columns = before.shards.row_end.max(), before.shards.column_end.max()
    same_type = before.data_type in ("", *(table.constraints.data_types or (table.data_type.name,)))
    return same_type and (rows, columns) == (table.num_embeddings, table.embedding_dim)


def transfer(tables: tuple[Table, ...], before: Placement, after: Placement) -> Transfer:
    """Count what moves between two placements of the same tables."""
    held = {placed.name: placed for placed in before.tables}
    shape = {table.name: table for table in tables}
    unmoved = new = 0.0
    moved = np.zeros((before.world_size, after.world_size))  # bytes by source and target
    for placed in after.tables:
        table, old = shape[placed.name], held.get(placed.name)
        old = old if old is not None and same_table(table, old) else None
        of_cell = cell_bytes(table, old)
        needed = of_cell * placed.shards.num_cells
        if old is None:
            new += needed
        elif old.shards.are_those_of(placed.shards, in_any_tier=True):
            unmoved += needed
        elif old.sharding_type.is_replicated:
            unmoved += _fetch_copies(old.shards, placed.shards, of_cell, after.ranks_per_group, moved)
        else:
            unmoved += _fetch_parts(old.shards, placed.shards, of_cell, moved)
    pairs = tuple(
        RankPair(source=source, target=target, bytes=amount)
        for (source, target), amount in zip(np.argwhere(moved).tolist(), moved[moved != 0].tolist(), strict=True)
    )
    return Transfer(unmoved_bytes=unmoved, new_bytes=new, pairs=pairs)


def _fetch_copies(old: Shards, new: Shards, bytes_of_cell: float, ranks_per_group: int, moved: Floats) -> float:
    """Add what each rank without a copy fetches from a rank with one; return the bytes of the copies that exist."""
    cells = new.num_rows.astype(np.float64) * new.num_columns
    lacks = ~np.isin(new.rank, old.rank)
    groups = new.rank // ranks_per_group
    nowhere = np.iinfo(np.int64).max
    least = np.full(1 + max(int(new.rank.max()), int(old.rank.max())) // ranks_per_group, nowhere)
    np.minimum.at(least, old.rank // ranks_per_group, old.rank)
    sources = np.where(least < nowhere, least, old.rank.min())[groups]
    _add(moved, sources[lacks], new.rank[lacks], cells[lacks] * bytes_of_cell)
    return float(cells[~lacks].sum()) * bytes_of_cell


def _fetch_parts(old: Shards, new: Shards, bytes_of_cell: float, moved: Floats) -> float:
    """Add what each rank fetches of cells that another rank holds; return the bytes of cells that do not move."""
    needing, having, cells = _common_cells(old, new)
    source, target = old.rank[having], new.rank[needing]
    own = source == target
    _add(moved, source[~own], target[~own], cells[~own] * bytes_of_cell)
    return float(cells[own].sum()) * bytes_of_cell


def _common_cells(old: Shards, new: Shards) -> tuple[Ints, Ints, Floats]:
    """Return the pairs of a new and an old shard that share cells, and how many.

    Old shards must not share cells: those of the same columns then follow each other by rows, and a new
    shard meets those from the first that ends below its start to the last that starts above its end.
    """
    found: list[tuple[Ints, Ints, Floats]] = []
    in_order = np.lexsort((old.row_offset, old.column_end, old.column_offset))
    left_edge, right_edge = old.column_offset[in_order], old.column_end[in_order]
    is_other = np.flatnonzero((np.diff(left_edge) != 0) | (np.diff(right_edge) != 0)) + 1
    for column_range in np.split(in_order, is_other):
        left, right = old.column_offset[column_range[0]], old.column_end[column_range[0]]
        width = np.minimum(new.column_end, right) - np.maximum(new.column_offset, left)
        first = np.searchsorted(old.row_end[column_range], new.row_offset, side="right")
        last = np.searchsorted(old.row_offset[column_range], new.row_end, side="left")
        count = np.where(width > 0, np.maximum(last - first, 0), 0)
        needing = np.repeat(np.arange(len(new)), count)
        place = np.arange(len(needing)) - np.repeat(np.cumsum(count) - count, count)
        having = column_range[first[needing] + place]
        rows = np.minimum(new.row_end[needing], old.row_end[having])
        rows -= np.maximum(new.row_offset[needing], old.row_offset[having])
        found.append((needing, having, rows.astype(np.float64) * width[needing]))
    needing, having, cells = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return needing, having, cells


def _add(moved: Floats, source: Ints, target: Ints, amount: Floats) -> None:
    np.add.at(moved.reshape(-1), source * moved.shape[1] + target, amount)  # one index is many times faster than two


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """How fast a rank sends and receives, inside its host (or pod) and to others; ``None`` if not known."""

    intra_host: Quantity | None
    inter_host: Quantity | None

    @property
    def evidence(self) -> Evidence | None:
        """The weaker of the two."""
        known = [link.evidence for link in (self.intra_host, self.inter_host) if link is not None]
        return max(known) if known else None


def links_of(cluster: Cluster) -> Links:
    """Return the link speeds of a cluster; a speed that is not stated is taken to be the other one."""
    intra, inter = _intra_host(cluster), _inter_host(cluster)
    has_inside = cluster.num_groups == 1 or cluster.ranks_per_group > 1
    return Links(
        intra_host=(intra or inter) if has_inside else None,
        inter_host=(inter or intra) if cluster.num_groups > 1 else None,
    )


def _intra_host(cluster: Cluster) -> Quantity | None:
    stated = cluster.hardware.numbers.get("intra_host_bytes_per_second")
    return stated or _of_domain(cluster, cluster.ranks_per_group)


def _inter_host(cluster: Cluster) -> Quantity | None:
    hardware = cluster.hardware
    if cluster.pod_size is None and cluster.world_size <= hardware.domain_ranks:  # hosts of a rack share a domain
        return _of_domain(cluster, cluster.world_size)
    law = hardware.hosts_laws.get("all_to_all")
    if law is None:
        return hardware.numbers.get("inter_host_bytes_per_second")
    return _rate(law.nic_bytes_per_second, law.basis)


def _of_domain(cluster: Cluster, num_ranks: int) -> Quantity | None:
    """Return the bus bandwidth of the largest measured all-to-all: all shards of a rank move at once."""
    law = cluster.hardware.domain_laws.get("all_to_all")
    if law is None or num_ranks < 2:
        return None
    rate = law.bus_bytes_per_second(np.array([law.basis.most_bytes]), num_ranks)[0]
    return _rate(float(rate), law.basis)


def _rate(value: float, basis: Basis) -> Quantity:
    return Quantity(value=value, unit="bytes_per_second", evidence=basis.evidence, source=basis.source)


def seconds_per_byte(cluster: Cluster) -> float:
    """Return what a moved byte takes if all ranks move equally many: at the speed of the slowest link on its way.

    0 for a cluster of one rank, and if no link speed is known.
    """
    links = links_of(cluster)
    link = links.inter_host or links.intra_host
    return 0.0 if link is None or cluster.world_size == 1 else 1.0 / (link.value * cluster.world_size)


def transfer_seconds(pairs: tuple[RankPair, ...], cluster: Cluster) -> float | None:
    """Return how long the busiest rank sends or receives over one kind of link, all ranks at once.

    ``None`` if bytes travel over links whose speed is not known. Ranks of a larger
    previous cluster are on hosts, or pods, of the same size.
    """
    if not pairs:
        return 0.0
    links = links_of(cluster)
    load: dict[tuple[str, str, int], float] = {}
    for pair in pairs:
        inside = cluster.group_of(pair.source) == cluster.group_of(pair.target)
        link = links.intra_host if inside else links.inter_host or links.intra_host
        if link is None:
            return None
        for way, rank in (("out", pair.source), ("in", pair.target)):
            key = ("intra" if inside else "inter", way, rank)
            load[key] = load.get(key, 0.0) + pair.bytes / link.value
    return max(load.values())
