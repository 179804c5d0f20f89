"""Where the rows and columns of every table go: what determines training, and nothing else."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Ints
from cost_models.vocabulary import HOST_TIERS, Kernel, Scheme, Tier
from planner.domain.plan.shards import Shards


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlacement:
    """One table's scheme, kernel and shards, in the runtime's order."""

    name: str
    sharding_type: Scheme
    compute_kernel: Kernel
    shards: Shards
    cache_load_factor: float | None = None
    #: device memory that FBGEMM leaves free when it allocates the cache; tables with different values never share a
    #: cache; ``None`` if nothing is stated
    cache_reserved_bytes: float | None = None
    stash_weights: bool = (
        False  # whether weights leave the device between the lookups of a step and their backward pass
    )
    # What a launcher compares with its live model; empty where not known.
    module_path: str = ""  # of the embedding module that holds the table
    data_type: str = ""
    pooling: str = ""
    hash_table_mode: str = ""  # empty of tables without a hash table as well

    @property
    def hot_rows(self) -> int:
        """Rows of a table of the host's memory that lie in the device's: those before the first shard there; else 0."""
        if self.compute_kernel is not Kernel.FUSED_UVM:
            return 0
        is_far = np.isin(self.shards.tier, HOST_TIERS)
        if np.all(is_far) or not np.any(is_far):
            return 0
        return int(self.shards.row_offset[is_far].min())

    @property
    def in_scm(self) -> bool:
        """Whether rows lie in storage-class memory."""
        return bool(np.any(self.shards.tier == Tier.SCM))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """All tables of a model on a cluster of ``world_size`` ranks."""

    world_size: int
    ranks_per_host: int
    tables: tuple[TablePlacement, ...]
    pod_size: int | None = None  # ranks of a pod of hosts; ``None`` if groups of ranks are hosts
    kv_cache_bytes: float | None = None  # of every rank, left to keys and values; ``None`` if there is no such cache
    use_index_dedup: bool = False  # whether repeated ids of sequences are left out before the exchange of ids

    @property
    def ranks_per_group(self) -> int:
        """Ranks of a pod, or else of a host."""
        return self.pod_size or self.ranks_per_host

    def all_shards(self) -> Shards:
        """Return the shards of all tables, in the order of ``tables``."""
        return Shards.joined(placed.shards for placed in self.tables)

    def table_of_shards(self) -> Ints:
        """Return the index into ``tables`` of each of all shards, shape (num_shards,)."""
        return np.repeat(np.arange(len(self.tables)), [len(placed.shards) for placed in self.tables])
