"""What moves from one placement to another, counted from their rectangles alone.

Shares no code with the search, which counts the same bytes in arrays: the pipeline compares the two.

A byte of a table is a cell with its share of the row: weights, optimizer state of the cell, and of the row spread
evenly over its columns. A rank fetches the cells that its new shards have and its old ones lack. Each
comes from the one rank that holds it; of several copies, from the first on the same host, else the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.hardware import Hardware, Quantity
from cost_models.vocabulary import Evidence, Scheme
from planner.domain.cluster import Cluster
from planner.domain.movement import RankPair
from planner.domain.placement import Placement, Shard, TablePlacement
from planner.domain.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that stay, come from nowhere, and travel from rank to rank."""

    kept_bytes: float
    new_bytes: float
    pairs: tuple[RankPair, ...]

    @property
    def moved_bytes(self) -> float:
        """Bytes of all pairs."""
        return sum(pair.bytes for pair in self.pairs)


def cell_bytes(table: Table) -> float:
    """Return the bytes that move with one cell of a table."""
    per_row = table.data_type.row_overhead_bytes + table.optimizer.row_bytes
    return table.data_type.element_bytes + table.optimizer.element_bytes + per_row / table.embedding_dim


def same_table(table: Table, before: TablePlacement) -> bool:
    """Whether a placement is of this table's rows, columns and type of weights."""
    rows = max(shard.row_offset + shard.num_rows for shard in before.shards)
    columns = max(shard.column_offset + shard.num_columns for shard in before.shards)
    same_type = before.data_type in ("", table.data_type.name)
    return same_type and (rows, columns) == (table.num_embeddings, table.embedding_dim)


def transfer(tables: tuple[Table, ...], before: Placement, after: Placement) -> Transfer:
    """Count what moves between two placements of the same tables."""
    held: Mapping[str, TablePlacement] = {placed.name: placed for placed in before.tables}
    shape = {table.name: table for table in tables}
    kept = new = 0.0
    moved: dict[tuple[int, int], float] = {}
    for placed in after.tables:
        table, old = shape[placed.name], held.get(placed.name)
        wanted = cell_bytes(table) * sum(shard.num_rows * shard.num_columns for shard in placed.shards)
        if old is None or not same_table(table, old):
            new += wanted
        elif set(_places(old.shards)) == set(_places(placed.shards)):
            kept += wanted
        else:
            kept += _fetch(old, placed, cell_bytes(table), after.ranks_per_host, moved)
    pairs = tuple(
        RankPair(source=source, target=target, bytes=moved[source, target]) for source, target in sorted(moved)
    )
    return Transfer(kept_bytes=kept, new_bytes=new, pairs=pairs)


def _places(shards: tuple[Shard, ...]) -> list[tuple[int, int, int, int, int]]:
    return [(one.rank, one.row_offset, one.num_rows, one.column_offset, one.num_columns) for one in shards]


def _fetch(
    old: TablePlacement,
    new: TablePlacement,
    bytes_of_cell: float,
    ranks_per_host: int,
    moved: dict[tuple[int, int], float],
) -> float:
    """Add what each rank fetches of one table; return the bytes that it has."""
    have, want = (np.array(_places(placed.shards), dtype=np.int64) for placed in (old, new))
    common = _overlaps(want[:, 1:3], have[:, 1:3]) * _overlaps(want[:, 3:5], have[:, 3:5])  # (new, old)
    own = want[:, 0][:, None] == have[:, 0][None, :]
    kept = float(common[own].sum())
    if old.sharding_type is Scheme.DATA_PARALLEL:  # everywhere the same: one source for all that a rank lacks
        lacking = ~own.any(axis=1)
        for target in want[lacking]:
            near = have[have[:, 0] // ranks_per_host == target[0] // ranks_per_host, 0]
            source = int((near if len(near) else have[:, 0]).min())
            _add(moved, source, int(target[0]), float(target[2] * target[4]) * bytes_of_cell)
    else:
        for new_index, old_index in zip(*np.nonzero((common > 0) & ~own), strict=True):
            cells = float(common[new_index, old_index])
            _add(moved, int(have[old_index, 0]), int(want[new_index, 0]), cells * bytes_of_cell)
    return kept * bytes_of_cell


def _overlaps(some: Ints, others: Ints) -> Floats:
    """Lengths that ranges of (offset, length) have in common, each with each."""
    low = np.maximum(some[:, 0][:, None], others[:, 0][None, :])
    high = np.minimum(some.sum(axis=1)[:, None], others.sum(axis=1)[None, :])
    common: Floats = np.maximum(high - low, 0).astype(np.float64)
    return common


def _add(moved: dict[tuple[int, int], float], source: int, target: int, amount: float) -> None:
    moved[source, target] = moved.get((source, target), 0.0) + amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """How fast a rank sends and receives, inside its host and to others; ``None`` where nothing is known."""

    intra_host: Quantity | None
    inter_host: Quantity | None

    @property
    def evidence(self) -> Evidence | None:
        """The weaker of the two."""
        known = [link.evidence for link in (self.intra_host, self.inter_host) if link is not None]
        return max(known) if known else None


def links_of(cluster: Cluster) -> Links:
    """Return the link speeds of a cluster: where one is not stated, the other stands for it."""
    intra, inter = _intra_host(cluster.hardware), cluster.hardware.numbers.get("inter_host_bytes_per_second")
    if cluster.num_hosts == 1:
        return Links(intra_host=intra or inter, inter_host=None)
    if cluster.ranks_per_host == 1:
        return Links(intra_host=None, inter_host=inter or intra)
    return Links(intra_host=intra or inter, inter_host=inter or intra)


def _intra_host(hardware: Hardware) -> Quantity | None:
    stated = hardware.numbers.get("intra_host_bytes_per_second")
    curve = hardware.intra_host_curves.get("alltoall")
    if stated is None and curve is not None:  # large messages: all shards of a rank at once
        rate = max(curve.bus_bytes_per_second)
        return Quantity(value=rate, unit="bytes_per_second", evidence=curve.evidence, source=curve.source)
    return stated


def seconds_per_byte(cluster: Cluster) -> float:
    """Return what a moved byte takes where all ranks move equally many: at the speed of the slowest link on its way.

    0 for a cluster of one rank, and where no link speed is known.
    """
    links = links_of(cluster)
    link = links.inter_host or links.intra_host
    return 0.0 if link is None or cluster.world_size == 1 else 1.0 / (link.value * cluster.world_size)


def transfer_seconds(pairs: tuple[RankPair, ...], cluster: Cluster) -> float | None:
    """Return how long the busiest rank sends or receives over one kind of link, all ranks at once.

    ``None`` where bytes travel over links whose speed is not known. Ranks of a larger
    cluster before are on hosts of the same size.
    """
    if not pairs:
        return 0.0
    links = links_of(cluster)
    load: dict[tuple[str, str, int], float] = {}
    for pair in pairs:
        inside = pair.source // cluster.ranks_per_host == pair.target // cluster.ranks_per_host
        link = links.intra_host if inside else links.inter_host or links.intra_host
        if link is None:
            return None
        for way, rank in (("out", pair.source), ("in", pair.target)):
            key = ("intra" if inside else "inter", way, rank)
            load[key] = load.get(key, 0.0) + pair.bytes / link.value
    return max(load.values())
