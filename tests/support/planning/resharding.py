"""Plans of one table on both sides of a reshard map, and its reads cell by cell."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.formats.compaction import groups_of
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shards


def groups(shards: Shards) -> list[dict[str, Any]]:
    """The shards as the compact form of a plan has them."""
    return groups_of(shards, np.zeros(len(shards), dtype=np.int64))


def plan_of(num_ranks: int, *tables: TablePlacement, digest: str = "0") -> dict[str, Any]:
    """As much of a plan in compact form as a reshard map reads."""
    return {
        "plan_digest": "sha256:" + 64 * digest,
        "world_size": num_ranks,
        "tables": [
            {
                "name": table.name,
                "data_type": "fp32",
                "sharding_type": table.sharding_type.label,
                "compute_kernel": table.compute_kernel.label,
                "shards": groups(table.shards),
            }
            for table in tables
        ],
    }


def owner_of_cells(placed: TablePlacement) -> NDArray[np.int64]:
    """The rank that stored each cell; of copies the first."""
    shards = placed.shards[:1] if placed.sharding_type.is_replicated else placed.shards
    owner = np.full((int(placed.shards.row_end.max()), int(placed.shards.column_end.max())), -1, dtype=np.int64)
    for shard in shards:
        rows = slice(shard.row_offset, shard.row_offset + shard.num_rows)
        owner[rows, shard.column_offset : shard.column_offset + shard.num_columns] = shard.rank
    return owner


def kernel_of(scheme: Scheme) -> Kernel:
    """A kernel that runs a scheme."""
    return Kernel.DENSE if scheme.is_replicated else Kernel.FUSED
