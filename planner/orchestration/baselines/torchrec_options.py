"""Priced ways to shard a table, as TorchRec's planner sees them, and the cluster they go on."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Placement(Enum):
    """Where the shards of an option may go."""

    WORLD = "one shard on every rank, in order"  # row-wise, data-parallel; TorchRec's "uniform"
    RANK = "each shard on any rank"  # table-wise, column-wise; "device"
    HOST_ROWS = "one shard on every rank of one host, in order"  # table-row-wise; "host"
    HOST_COLUMNS = "each shard on any rank of one host"  # table-column-wise; "host"
    HOSTS = "one shard on every rank of each of several hosts"  # grid; "multi_host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to shard one table."""

    scheme: str  # sharding type; proposals of one scheme for all tables go by it
    placement: Placement
    seconds: NDArray[np.float64]  # (num_shards, num_phases)
    bytes: NDArray[np.int64]  # (num_shards, num_tiers), most precious tier first

    def total_seconds(self) -> NDArray[np.float64]:
        """Seconds of each shard, shape (num_shards,), phases added left to right.

        The order matters: loads that are equal in TorchRec's sums, and so are ties in its heap,
        are equal here.
        """
        return added(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Ranks and what they hold."""

    ranks_per_host: int
    capacity_bytes: NDArray[np.int64]  # (num_ranks, num_tiers)

    @property
    def num_ranks(self) -> int:
        """Ranks of all hosts."""
        return len(self.capacity_bytes)

    @property
    def num_hosts(self) -> int:
        """Whole hosts."""
        return self.num_ranks // self.ranks_per_host


def added(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add the last axis from left to right, so that rounding does not depend on the platform."""
    total: NDArray[np.float64] = seconds[..., 0].copy()
    for phase in range(1, seconds.shape[-1]):
        total += seconds[..., phase]
    return total


def placement_of(scheme: str) -> Placement:
    """Where TorchRec's partitioner puts shards of a sharding type."""
    return _PLACEMENTS[scheme]


_PLACEMENTS = {
    "data_parallel": Placement.WORLD,
    "row_wise": Placement.WORLD,
    "table_wise": Placement.RANK,
    "column_wise": Placement.RANK,
    "table_row_wise": Placement.HOST_ROWS,
    "table_column_wise": Placement.HOST_COLUMNS,
    "grid_shard": Placement.HOSTS,
}
