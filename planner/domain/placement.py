"""Where the rows and columns of every table go: what determines training, and nothing else."""

from dataclasses import dataclass

from cost_models.vocabulary import Kernel, Scheme, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A rectangle of a table on one rank, in one memory tier."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int
    tier: Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlacement:
    """One table's scheme, kernel and shards, in the runtime's order."""

    name: str
    sharding_type: Scheme
    compute_kernel: Kernel
    shards: tuple[Shard, ...]
    cache_load_factor: float | None = None
    # What a launcher compares with its live model; empty where not known.
    module_path: str = ""  # of the embedding module that holds the table
    data_type: str = ""
    pooling: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """All tables of a model on a cluster of ``world_size`` ranks."""

    world_size: int
    ranks_per_host: int
    tables: tuple[TablePlacement, ...]
