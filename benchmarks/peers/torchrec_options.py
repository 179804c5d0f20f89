"""Priced ways to shard a table, as TorchRec's planner sees them, and the cluster they go on."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Parts of TorchRec's ``Perf.total``, in the order in which it adds them.
PERF_PARTS = ("fwd_compute", "bwd_compute", "fwd_comms", "bwd_comms", "prefetch_compute")
MILLISECONDS_PER_SECOND = 1e3


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
    return reduce(np.add, np.moveaxis(seconds, -1, 0))


def read_dump(path: Path) -> tuple[list[list[Option]], Cluster]:
    """Read a dump of TorchRec's enumerated options: options of each table, and the cluster.

    Perf is in ms and becomes seconds. Equal shards may be folded into one with ``identical_shards``.
    """
    document = json.loads(gzip.decompress(path.read_bytes()))
    capacity = np.stack([document["hbm_cap_bytes"], document["ddr_cap_bytes"]], axis=1).astype(np.int64)
    tables = [[_option(entry) for entry in table["options"]] for table in document["tables"]]
    return tables, Cluster(ranks_per_host=document["local_world_size"], capacity_bytes=capacity)


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


def _option(entry: Mapping[str, Any]) -> Option:
    shards: Sequence[Mapping[str, Any]] = entry["shards"]
    seconds = np.array([[s["perf_parts"][part] for part in PERF_PARTS] for s in shards]) / MILLISECONDS_PER_SECOND
    held = np.array([[s["hbm"], s["ddr"]] for s in shards], dtype=np.int64)
    copies = entry.get("identical_shards") or 1
    return Option(
        scheme=entry["sharding_type"],
        placement=placement_of(entry["sharding_type"]),
        seconds=np.repeat(seconds, copies, axis=0),
        bytes=np.repeat(held, copies, axis=0),
    )
