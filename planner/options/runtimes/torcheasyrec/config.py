"""TorchEasyRec: what its config states of a table's sharding, and what its planner then makes of it.

The config names sharding types and kernels, of each table or of all, and nothing else (``ParameterConstraints`` of
``feature.proto``). With one of each, TorchRec's planner inside has a single option for the table: its shards follow
from shape and cluster, caches have TorchRec's load factor, and columns are cut at TorchRec's own width, since no field
states the least width of a piece. No field states ranks either. They follow for tables that are on all ranks; the
planner's partitioner places all other tables.

References
----------
alibaba/TorchEasyRec: ``tzrec/protos/feature.proto``, ``tzrec/features/feature.py`` (constraints, names, data types),
``tzrec/utils/plan_util.py`` (planner). TorchRec 1.8.0: ``distributed/sharding_plan.py`` (cuts),
``distributed/planner/partitioners.py`` (ranks), ``distributed/embedding_types.py`` and ``distributed/embedding.py``
(what is offered), ``distributed/planner/constants.py`` (load factor, width).
"""

import numpy as np

from cost_models.arrays import Ints
from cost_models.vocabulary import Holders, Kernel, Scheme
from planner.domain.plan.shards import Shards
from planner.options.runtimes.torchrec.rules import SCHEMES, SEQUENCE_SCHEMES

#: Share of a cached table's rows that the cache has; no field states another one.
CACHE_LOAD_FACTOR = 0.2
#: TorchEasyRec's words for the types that weights may have.
DATA_TYPES = {"fp32": "FP32", "fp16": "FP16"}
#: Kernels of everything but ``data_parallel``. ``key_value`` would need a place for its files, which no field states.
KERNELS = (Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM)
#: Columns of the narrowest piece that TorchRec cuts by default.
MIN_PIECE_COLUMNS = 128
_COLUMN_STEP = 4


class UndictatedTable(ValueError):
    """A table whose sharding TorchEasyRec's config cannot request, or would not get."""


def piece_columns(num_columns: int) -> int:
    """Return how wide TorchRec cuts a table's pieces: the least divisor from 128 on that is a multiple of 4, or all."""
    divisors = (width for width in range(MIN_PIECE_COLUMNS, num_columns, _COLUMN_STEP) if num_columns % width == 0)
    return next(divisors, num_columns)


def has_fixed_ranks(scheme: Scheme, *, num_hosts: int, ranks_per_host: int) -> bool:
    """Whether the scheme alone decides on which ranks the shards of a table are."""
    if num_hosts * ranks_per_host == 1 or scheme.facts.holders is Holders.WORLD:
        return True
    return num_hosts == 1 and scheme.facts.holders is Holders.HOST


def name_issue(name: str) -> str | None:
    """Return why no table of TorchEasyRec's has this name, or ``None``."""
    return "its name has a dot, which stands between modules" if "." in name else None


def check_kernel(scheme: Scheme, kernel: Kernel, cache_load_factor: float | None) -> None:
    """Check that the planner has the scheme, and the kernel for it, with a cache of this size.

    Raises
    ------
    UndictatedTable
        It does not.
    """
    if scheme not in SCHEMES:
        raise UndictatedTable(f"TorchRec has no {scheme.label}")
    if kernel is Kernel.KEY_VALUE:
        raise UndictatedTable("it is kept on SSD (key_value), and no field says where")
    runs = (Kernel.DENSE,) if scheme.is_replicated else KERNELS
    if kernel not in runs:
        raise UndictatedTable(
            f"{scheme.label} runs with {', '.join(one.label for one in runs)}, not with {kernel.label}"
        )
    if kernel is Kernel.FUSED_UVM_CACHING and cache_load_factor != CACHE_LOAD_FACTOR:
        raise UndictatedTable(
            f"its cache has {cache_load_factor} of the rows, and no field says so: caches have {CACHE_LOAD_FACTOR}"
        )


def check_pooling(scheme: Scheme, pooling: str | None) -> None:
    """Check that the planner offers the scheme for tables that are pooled so, and that TorchRec trains it.

    Raises
    ------
    UndictatedTable
        It does not.
    """
    if pooling == "none" and scheme not in SEQUENCE_SCHEMES:
        raise UndictatedTable(f"{scheme.label} is not offered for tables of sequences")
    if pooling == "mean" and scheme is Scheme.GRID_SHARD:
        raise UndictatedTable("grid_shard of a mean adds the means of partial bags")


def in_order(shards: Shards) -> Shards:
    """Return the shards as TorchRec lists them: by columns, rows, and copies by rank."""
    return Shards(shards.columns[:, np.lexsort((shards.rank, shards.row_offset, shards.column_offset))])


def check_shards(
    scheme: Scheme, shards: Shards, num_rows: int, num_columns: int, *, num_hosts: int, ranks_per_host: int
) -> None:
    """Check that the planner cuts the table so, and that its partitioner could put the shards there.

    ``shards`` are in the order of :func:`in_order`.

    Raises
    ------
    UndictatedTable
        It does not, or could not.
    """
    if num_columns % _COLUMN_STEP:
        raise UndictatedTable(f"it has {num_columns} columns, and kernels need a multiple of {_COLUMN_STEP}")
    _check_cut(scheme, shards, num_rows, num_columns, num_hosts, ranks_per_host)
    _check_ranks(scheme, shards.rank, num_hosts, ranks_per_host)


def _check_cut(
    scheme: Scheme, shards: Shards, num_rows: int, num_columns: int, num_hosts: int, ranks_per_host: int
) -> None:
    world_size = num_hosts * ranks_per_host
    width = piece_columns(num_columns) if scheme.facts.cuts_columns else num_columns
    num_blocks, copies = scheme.row_blocks(world_size, ranks_per_host), world_size if scheme.is_replicated else 1
    block = -(-num_rows // num_blocks)
    if block * (num_blocks - 1) >= num_rows:
        raise UndictatedTable(f"{num_rows} rows over {num_blocks} ranks leave one without any, which trains wrongly")
    widths = {int(found) for found in shards.num_columns}
    if widths != {width}:
        raise UndictatedTable(
            f"its pieces have {_listed(widths)} columns, and no field says so: TorchRec cuts pieces of {width}"
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
        raise UndictatedTable(f"its shards are others than {cut}, in as many copies as {copies}, which TorchRec makes")


def _check_ranks(scheme: Scheme, rank: Ints, num_hosts: int, ranks_per_host: int) -> None:
    host = rank // ranks_per_host
    if scheme.facts.holders is Holders.WORLD:
        if not np.array_equal(rank, np.arange(len(rank))):
            raise UndictatedTable(f"{scheme.label} is on all ranks, in their order")
    elif scheme.facts.keeps_host:
        if len(np.unique(host)) > 1:
            raise UndictatedTable(f"{scheme.label} is on one host")
    elif scheme.facts.holders is Holders.HOST:
        hosts = host[::ranks_per_host]
        if not np.array_equal(rank, (hosts[:, None] * ranks_per_host + np.arange(ranks_per_host)).ravel()):
            raise UndictatedTable(f"{scheme.label} has row blocks on all ranks of a host, in their order")
        first = hosts[:num_hosts]
        if len(np.unique(first)) < len(first) or not np.array_equal(hosts[num_hosts:], hosts[:-num_hosts]):
            raise UndictatedTable("pieces of a grid go round the hosts, each on the next one, all hosts in turn")


def _listed(numbers: set[int]) -> str:
    return " and ".join(str(number) for number in sorted(numbers))
