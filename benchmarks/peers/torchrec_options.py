"""Dumps of TorchRec's enumerated options, read as the options that the re-made search takes."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from planner.orchestration.baselines.torchrec_options import Cluster, Option, placement_of

#: Parts of TorchRec's ``Perf.total``, in the order in which it adds them.
PERF_PARTS = ("fwd_compute", "bwd_compute", "fwd_comms", "bwd_comms", "prefetch_compute")
MILLISECONDS_PER_SECOND = 1e3


def read_dump(path: Path) -> tuple[list[list[Option]], Cluster]:
    """Read a dump of TorchRec's enumerated options: options of each table, and the cluster.

    Perf is in ms and becomes seconds. Equal shards may be folded into one with ``identical_shards``.
    """
    document = json.loads(gzip.decompress(path.read_bytes()))
    capacity = np.stack([document["hbm_cap_bytes"], document["ddr_cap_bytes"]], axis=1).astype(np.int64)
    tables = [[_option(entry) for entry in table["options"]] for table in document["tables"]]
    return tables, Cluster(ranks_per_host=document["local_world_size"], capacity_bytes=capacity)


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
