"""TorchEasyRec: what its config states of a table's sharding, and what its planner then makes of it.

The config names sharding types and kernels, of each table or of all, and nothing else (``ParameterConstraints`` of
``feature.proto``). With one of each, TorchRec's planner inside has a single option for the table: its shards follow
from shape and cluster, caches have TorchRec's load factor, and columns are cut at TorchRec's own width, since no field
states the least width of a piece. No field states ranks either. They follow for tables that are on all ranks; the
planner's partitioner places all other tables.

References
----------
alibaba/TorchEasyRec: ``tzrec/protos/feature.proto``, ``tzrec/features/feature.py`` (constraints, names, data types),
``tzrec/utils/plan_util.py`` (planner), ``tzrec/modules/embedding.py`` ("mc module not support const now").
TorchRec 1.8.0: ``distributed/sharding_plan.py`` (cuts), ``distributed/planner/partitioners.py`` (ranks),
``distributed/embedding_types.py`` and ``distributed/embedding.py`` (what is offered),
``distributed/planner/constants.py`` (load factor, width).
"""

import numpy as np

from cost_models.arrays import Ints
from cost_models.vocabulary import Holders, Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.options.runtimes.geometry import Size, UnheldGeometry, listed
from planner.options.runtimes.torchrec.rules import SCHEMES, SEQUENCE_SCHEMES

#: Share of a cached table's rows that the cache has; no field states another one.
CACHE_LOAD_FACTOR = 0.2
#: TorchEasyRec's words for the types that weights may have.
DATA_TYPES = {"fp32": "FP32", "fp16": "FP16"}
#: Kernels of everything but ``data_parallel``. ``key_value`` would need a place for its files, which no field states.
KERNELS = (Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM)
#: Kernel of tables with ``zch``. Constraints of their features are dropped, and those of all tables alike
#: (``global_embedding_constraints``) are left.
HASH_TABLE_KERNEL = Kernel.FUSED
#: Columns of the narrowest piece that TorchRec cuts by default.
MIN_PIECE_COLUMNS = 128
_COLUMN_STEP = 4


def piece_columns(num_columns: int) -> int:
    """Return how wide TorchRec cuts a table's pieces: the least divisor from 128 on that is a multiple of 4, or all."""
    divisors = (width for width in range(MIN_PIECE_COLUMNS, num_columns, _COLUMN_STEP) if num_columns % width == 0)
    return next(divisors, num_columns)


def has_fixed_ranks(scheme: Scheme, placement: Placement) -> bool:
    """Whether the scheme alone says on which ranks the shards of a table are."""
    one_host = placement.world_size == placement.ranks_per_host
    holders = scheme.facts.holders
    return placement.world_size == 1 or holders is Holders.WORLD or (one_host and holders is Holders.HOST)


def name_issue(name: str) -> str | None:
    """Return why no table of TorchEasyRec's has this name, or ``None``."""
    return "has a dot, which stands between modules" if "." in name else None


def in_order(shards: Shards) -> Shards:
    """Return the shards as TorchRec lists them: by columns, rows, and copies by rank."""
    return Shards(shards.columns[:, np.lexsort((shards.rank, shards.row_offset, shards.column_offset))])


def check_asked(placed: TablePlacement, size: Size, pooling: str, placement: Placement) -> None:
    """Check that the planner offers what a table is planned as, cuts it so, and could put the shards there.

    Raises
    ------
    UnheldGeometry
        It does not, or could not.
    """
    scheme, (num_rows, num_columns) = placed.sharding_type, size
    _check_kernel(scheme, placed.compute_kernel, placed.cache_load_factor)
    if placed.hash_table_mode and (scheme, placed.compute_kernel) != (Scheme.ROW_WISE, HASH_TABLE_KERNEL):
        raise UnheldGeometry(
            f"constraints of a feature with zch are dropped, and it is row_wise with {HASH_TABLE_KERNEL.label}, not"
            f" {scheme.label} with {placed.compute_kernel.label}"
        )
    if pooling == "none" and scheme not in SEQUENCE_SCHEMES:
        raise UnheldGeometry(f"{scheme.label} is not offered for tables of sequences")
    if pooling == "mean" and scheme is Scheme.GRID_SHARD:
        raise UnheldGeometry("grid_shard of a mean adds the means of partial bags")
    if num_columns % _COLUMN_STEP:
        raise UnheldGeometry(f"it has {num_columns} columns, and kernels need a multiple of {_COLUMN_STEP}")
    shards, ranks_per_host = in_order(placed.shards), placement.ranks_per_host
    num_hosts = placement.world_size // ranks_per_host
    _check_cut(scheme, shards, num_rows, num_columns, num_hosts, ranks_per_host)
    _check_ranks(scheme, shards.rank, num_hosts, ranks_per_host)


def _check_kernel(scheme: Scheme, kernel: Kernel, cache_load_factor: float | None) -> None:
    """Check that the planner has the scheme, and the kernel for it, with a cache of this size."""
    if scheme not in SCHEMES:
        raise UnheldGeometry(f"TorchRec has no {scheme.label}")
    if kernel is Kernel.KEY_VALUE:
        raise UnheldGeometry("it is kept on SSD (key_value), and no field says where")
    runs = (Kernel.DENSE,) if scheme.is_replicated else KERNELS
    if kernel not in runs:
        raise UnheldGeometry(
            f"{scheme.label} runs with {', '.join(one.label for one in runs)}, not with {kernel.label}"
        )
    if kernel is Kernel.FUSED_UVM_CACHING and cache_load_factor != CACHE_LOAD_FACTOR:
        raise UnheldGeometry(
            f"its cache has {cache_load_factor} of the rows, and no field says so: caches have {CACHE_LOAD_FACTOR}"
        )


def _check_cut(
    scheme: Scheme, shards: Shards, num_rows: int, num_columns: int, num_hosts: int, ranks_per_host: int
) -> None:
    world_size = num_hosts * ranks_per_host
    width = piece_columns(num_columns) if scheme.facts.cuts_columns else num_columns
    num_blocks, copies = scheme.row_blocks(world_size, ranks_per_host), world_size if scheme.is_replicated else 1
    block = -(-num_rows // num_blocks)
    if block * (num_blocks - 1) >= num_rows:
        raise UnheldGeometry(f"{num_rows} rows over {num_blocks} ranks leave one without any, which trains wrongly")
    widths = set(shards.num_columns.tolist())
    if widths != {width}:
        raise UnheldGeometry(
            f"its pieces have {listed(widths)} columns, and no field says so: TorchRec cuts pieces of {width}"
        )
    rows, columns = np.arange(0, num_rows, block), np.arange(0, num_columns, width)
    first_row, first_column = (np.repeat(np.tile(rows, len(columns)), copies), np.repeat(columns, len(rows) * copies))
    is_same = len(shards) == len(first_row) and (
        np.array_equal(shards.row_offset, first_row)
        and np.array_equal(shards.column_offset, first_column)
        and np.array_equal(shards.num_rows, np.minimum(block, num_rows - first_row))
    )
    if not is_same:
        cut = f"{len(columns)} x {num_blocks} blocks of {width} columns and {block} rows"
        raise UnheldGeometry(f"its shards are others than {cut}, in as many copies as {copies}, which TorchRec makes")


def _check_ranks(scheme: Scheme, rank: Ints, num_hosts: int, ranks_per_host: int) -> None:
    host = rank // ranks_per_host
    if scheme.facts.holders is Holders.WORLD:
        if not np.array_equal(rank, np.arange(len(rank))):
            raise UnheldGeometry(f"{scheme.label} is on all ranks, in their order")
    elif scheme.facts.keeps_host:
        if len(np.unique(host)) > 1:
            raise UnheldGeometry(f"{scheme.label} is on one host")
    elif scheme.facts.holders is Holders.HOST:
        hosts = host[::ranks_per_host]
        if not np.array_equal(rank, (hosts[:, None] * ranks_per_host + np.arange(ranks_per_host)).ravel()):
            raise UnheldGeometry(f"{scheme.label} has row blocks on all ranks of a host, in their order")
        first = hosts[:num_hosts]
        if len(np.unique(first)) < len(first) or not np.array_equal(hosts[num_hosts:], hosts[:-num_hosts]):
            raise UnheldGeometry("pieces of a grid go round the hosts, each on the next one, all hosts in turn")
