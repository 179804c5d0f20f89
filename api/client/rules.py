"""Which cuts TorchRec trains correctly.

TorchRec accepts more than it computes correctly: uneven row pieces, pieces without rows, MEAN
pooling next to other schemes, and grids of MEAN tables train to wrong weights without an error
(found by training such plans with TorchRec 1.8.0 on gloo and comparing with the unsharded
model). So a plan from anywhere passes these rules before it reaches a model.
"""

from collections.abc import Callable, Mapping, Sequence

from .live_table import LiveTable
from .plan_types import ShardDocument, TableDocument

#: Kernels of ``EmbeddingComputeKernel`` that a plan of this version can name.
FUSED_KERNELS = frozenset({"fused", "fused_uvm", "fused_uvm_caching"})
#: Where the dense kernel runs; there the launcher's own optimizer updates the table.
_DENSE_KERNELS = {"data_parallel": frozenset({"dense"}), "table_wise": FUSED_KERNELS | {"dense"}}
#: Where TorchRec keeps rows on SSD.
_KEY_VALUE_SCHEMES = frozenset({"table_wise", "column_wise", "row_wise", "table_row_wise"})
#: Types of weights that TorchRec trains: quantised ones belong to inference.
_TRAINED_TYPES = frozenset({"fp32", "fp16"})
#: Cached share of the rows that TorchRec gives each of these tables, and that a plan can only cut down.
_MAX_KEY_VALUE_SHARE = 0.2
#: Optimizers with a number for each row of a shard.
_ROW_STATE_OPTIMIZERS = frozenset({"rowwise_adagrad", "partial_rowwise_adam", "partial_rowwise_lamb"})
#: FBGEMM reads rows as vectors of 4 elements.
COLUMN_MULTIPLE = 4
ROW_SCHEMES = frozenset({"row_wise", "table_row_wise"})
#: What TorchRec shards an ``EmbeddingCollection`` by.
SEQUENCE_SCHEMES = frozenset({"data_parallel", "table_wise", "column_wise", "row_wise"})


def geometry_reasons(table: TableDocument, live: LiveTable, world_size: int, ranks_per_group: int) -> list[str]:
    """Everything about the shards of one table that TorchRec would refuse or compute wrongly."""
    rule = _RULES.get(table["sharding_type"])
    if rule is None:
        return [f"unknown sharding_type {table['sharding_type']}"]
    kernels = _DENSE_KERNELS.get(table["sharding_type"], FUSED_KERNELS)
    if table["sharding_type"] in _KEY_VALUE_SCHEMES:
        kernels |= {"key_value"}
    reasons = []
    if live.pooling == "none" and table["sharding_type"] not in SEQUENCE_SCHEMES:
        reasons.append(f"{table['sharding_type']} of an EmbeddingCollection is not supported by TorchRec")
    if table["compute_kernel"] not in kernels:
        reasons.append(f"{table['sharding_type']} needs the kernel {' or '.join(sorted(kernels))}")
    is_stored_by_columns = (table["compute_kernel"], table["sharding_type"]) == ("key_value", "column_wise")
    if is_stored_by_columns and len({s["rank"] for s in table["shards"]}) < len(table["shards"]):
        reasons.append("two column pieces of a key_value table on one rank share the cache of one of them")
    if any(s["rank"] >= world_size for s in table["shards"]):
        return [*reasons, f"a rank is not one of {world_size}"]
    return reasons + rule(table["shards"], live, world_size, ranks_per_group)


def pod_reasons(table: TableDocument, live: LiveTable, ranks_per_host: int, ranks_per_group: int) -> list[str]:
    """What TorchRec cannot build over a pod of several hosts: a grid with state for each row.

    TorchRec 1.8.0 counts the column pieces of that state by the ranks of a host.
    """
    if (
        table["sharding_type"] == "grid_shard"
        and ranks_per_group > ranks_per_host
        and live.optimizer in _ROW_STATE_OPTIMIZERS
    ):
        return [f"TorchRec cannot build the state of {live.optimizer} for a grid over several hosts of a pod"]
    return []


def kernel_reasons(table: TableDocument, live: LiveTable, device: str) -> list[str]:
    """What a kernel cannot do on a device.

    FBGEMM's kernels are not compiled for bf16 weights, and TorchRec builds no operator of quantised ones in training.
    It keeps rows on SSD on GPUs alone. FBGEMM's dense kernel on CPU knows no rows without pooling
    (``PoolingMode.NONE``): it adds them up, and TorchRec fails in the first step, unless every bag has one id.
    """
    if live.data_type == "bf16":
        return ["no kernel of FBGEMM looks up bf16 weights; use fp16 or fp32"]
    if live.data_type not in _TRAINED_TYPES:
        return [f"TorchRec builds no operator of {live.data_type} weights in training; use fp16 or fp32"]
    if device == "cpu" and live.pooling == "none" and table["compute_kernel"] == "dense":
        return ["the dense kernel on cpu adds up the rows of an EmbeddingCollection; use the kernel fused"]
    if device == "cpu" and table["compute_kernel"] == "key_value":
        return ["key_value runs on GPUs alone"]
    if table["compute_kernel"] == "key_value" and (table.get("cache_load_factor") or 0.0) > _MAX_KEY_VALUE_SHARE:
        return [f"TorchRec caches at most {_MAX_KEY_VALUE_SHARE:g} of the rows of a key_value table"]
    return []


def pooling_reasons(tables: Sequence[tuple[TableDocument, LiveTable]]) -> list[str]:
    """Whether the MEAN tables of one module are cut in a way that TorchRec averages correctly.

    After a row-wise lookup TorchRec divides by the bag length for the whole module, and resets
    that only for row-wise SUM tables: next to a row-wise MEAN table, every table of another
    scheme is divided once too often. A grid of a MEAN table adds means of partial bags.
    """
    reasons = [
        f'table "{live.name}": MEAN pooling as grid_shard adds means of partial bags'
        for table, live in tables
        if live.pooling == "mean" and table["sharding_type"] == "grid_shard"
    ]
    mean_rows = [
        live.name for table, live in tables if live.pooling == "mean" and table["sharding_type"] in ROW_SCHEMES
    ]
    others = [live.name for table, live in tables if table["sharding_type"] not in ROW_SCHEMES]
    if mean_rows and others:
        reasons.append(
            f'table "{mean_rows[0]}": MEAN pooling as row_wise or table_row_wise makes TorchRec divide the outputs'
            f' of "{others[0]}" twice; cut all tables of the module by rows, or none of its MEAN tables'
        )
    return reasons


def row_blocks(num_rows: int, num_pieces: int) -> list[tuple[int, int]]:
    """(offset, rows) of the only row cut that TorchRec trains correctly.

    .. math:: b = \\lceil rows / n \\rceil

    Every piece has ``b`` rows but the last, which has the rest. The rest must not be empty.
    """
    block = -(-num_rows // num_pieces)
    return [(i * block, min(block, num_rows - i * block)) for i in range(num_pieces)]


def _table_wise(shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int) -> list[str]:
    whole = [(0, live.num_embeddings, 0, live.embedding_dim)]
    return [] if [_rectangle(s) for s in shards] == whole else ["table_wise needs one shard that is the whole table"]


def _data_parallel(
    shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int
) -> list[str]:
    whole = (0, live.num_embeddings, 0, live.embedding_dim)
    copies = [(s["rank"], _rectangle(s)) for s in shards]
    if copies == [(rank, whole) for rank in range(world_size)]:
        return []
    return [f"data_parallel needs a whole copy on each of {world_size} ranks, in order"]


def _column_wise(shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int) -> list[str]:
    reasons = _column_piece_reasons([(s["column_offset"], s["num_columns"]) for s in shards], live.embedding_dim)
    if any((s["row_offset"], s["num_rows"]) != (0, live.num_embeddings) for s in shards):
        reasons.add("every column piece needs all rows")
    return sorted(reasons)


def _table_column_wise(
    shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int
) -> list[str]:
    reasons = _column_wise(shards, live, world_size, ranks_per_group)
    if len({s["rank"] // ranks_per_group for s in shards}) > 1:
        reasons.append("table_column_wise needs all pieces on one host, or in one pod")
    return reasons


def _row_wise(shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int) -> list[str]:
    return _row_piece_reasons(shards, live.num_embeddings, (0, live.embedding_dim), list(range(world_size)))


def _table_row_wise(
    shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int
) -> list[str]:
    group = _group_ranks(shards[0]["rank"], ranks_per_group)
    return _row_piece_reasons(shards, live.num_embeddings, (0, live.embedding_dim), group)


def _grid_shard(shards: Sequence[ShardDocument], live: LiveTable, world_size: int, ranks_per_group: int) -> list[str]:
    if len(shards) % ranks_per_group:
        return [f"grid_shard needs {ranks_per_group} row pieces for every column piece, not {len(shards)} shards"]
    pieces = [shards[start : start + ranks_per_group] for start in range(0, len(shards), ranks_per_group)]
    columns = [(piece[0]["column_offset"], piece[0]["num_columns"]) for piece in pieces]
    reasons = _column_piece_reasons(columns, live.embedding_dim)
    for piece, piece_columns in zip(pieces, columns, strict=True):
        group = _group_ranks(piece[0]["rank"], ranks_per_group)
        reasons.update(_row_piece_reasons(piece, live.num_embeddings, piece_columns, group))
    return sorted(reasons)


def _row_piece_reasons(
    shards: Sequence[ShardDocument], num_rows: int, columns: tuple[int, int], ranks: list[int]
) -> list[str]:
    reasons = []
    blocks = row_blocks(num_rows, len(ranks))
    if blocks[-1][1] <= 0:
        reasons.append(f"{num_rows} rows in {len(ranks)} blocks leave a rank without rows, which breaks other tables")
    if [s["rank"] for s in shards] != ranks:
        reasons.append(f"row pieces must stand on ranks {ranks[0]}..{ranks[-1]} in order")
    elif [_rectangle(s) for s in shards] != [(*block, *columns) for block in blocks]:
        reasons.append(f"row pieces must be blocks of {blocks[0][1]} rows with the rest in the last one")
    return reasons


def _column_piece_reasons(pieces: Sequence[tuple[int, int]], num_columns: int) -> set[str]:
    """Return what is wrong with pieces (offset, columns) that are to tile a table from left to right."""
    reasons = set()
    position = 0
    for offset, width in pieces:
        if offset != position:
            reasons.add("column pieces must stand from left to right without gap or overlap")
        if width <= 0 or width % COLUMN_MULTIPLE:
            reasons.add(f"a column piece has {width} columns, not a multiple of {COLUMN_MULTIPLE}")
        position = offset + width
    if position != num_columns:
        reasons.add(f"column pieces end at {position} of {num_columns}")
    return reasons


def _group_ranks(rank: int, ranks_per_group: int) -> list[int]:
    first = rank - rank % ranks_per_group
    return list(range(first, first + ranks_per_group))


def _rectangle(shard: ShardDocument) -> tuple[int, int, int, int]:
    return shard["row_offset"], shard["num_rows"], shard["column_offset"], shard["num_columns"]


_RULES: Mapping[str, Callable[[Sequence[ShardDocument], LiveTable, int, int], list[str]]] = {
    "data_parallel": _data_parallel,
    "table_wise": _table_wise,
    "column_wise": _column_wise,
    "row_wise": _row_wise,
    "table_row_wise": _table_row_wise,
    "table_column_wise": _table_column_wise,
    "grid_shard": _grid_shard,
}
