"""TorchRec: whether the shards of a finished plan are those that it trains correctly.

Written from TorchRec's rules alone: schemes are names here, and none of their facts is read, so that an error in the
facts or in the options is caught. Exact cover is checked in :mod:`planner.verification.verify`. The launcher's client
has the same rules for plain documents (``api/client/rules.py``); a test compares the two (decision 0048).
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Ints
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.torchrec.hash_table_geometry import hash_table_issues

#: Widest shard: GPU kernels of earlier releases returned zeros for wider rows (TorchRec issue 3673).
MAX_SHARD_COLUMNS = 1024
_ROWS_ANYWHERE = (Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING)
_CACHED = (Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE)
#: Kernels by scheme.
_KERNELS = {
    Scheme.DATA_PARALLEL: (Kernel.DENSE,),
    Scheme.TABLE_WISE: (*_ROWS_ANYWHERE, Kernel.DENSE, Kernel.KEY_VALUE),
    Scheme.COLUMN_WISE: (*_ROWS_ANYWHERE, Kernel.KEY_VALUE),
    Scheme.ROW_WISE: (*_ROWS_ANYWHERE, Kernel.KEY_VALUE),
    Scheme.TABLE_ROW_WISE: (*_ROWS_ANYWHERE, Kernel.KEY_VALUE),
    Scheme.TABLE_COLUMN_WISE: _ROWS_ANYWHERE,
    Scheme.GRID_SHARD: _ROWS_ANYWHERE,
}
#: Optimizers of the fused kernels on CPUs.
_HOST_OPTIMIZERS = ("none", "sgd", "adagrad", "rowwise_adagrad")
#: Optimizers of which FBGEMM hands out no state, so that TorchRec cannot build their operators.
_UNBUILT_OPTIMIZERS = ("lars_sgd",)
#: Optimizers with a number for each row of a shard.
_ROW_STATE_OPTIMIZERS = ("rowwise_adagrad", "partial_rowwise_adam", "partial_rowwise_lamb")
_TRAINED_TYPES = ("fp32", "fp16")
_MAX_KEY_VALUE_SHARE = 0.2
_ROW_REDUCED = (Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE)
_BY_COLUMNS = (Scheme.COLUMN_WISE, Scheme.TABLE_COLUMN_WISE)


def check_placement(problem: Problem, placement: Placement) -> list[Issue]:
    """Return every rule of TorchRec that the placement breaks, with pointers into the plan."""
    issues: list[Issue] = []
    tables = {table.name: table for table in problem.tables}
    for index, (placed, sizes) in enumerate(zip(placement.tables, _broken_sizes(placement), strict=True)):
        if placed.name in tables:  # others are reported by verify
            issues += [
                Issue(code=code, pointer=f"/tables/{index}", message=f'table "{placed.name}": {message}', hint=hint)
                for code, message, hint in _table_issues(problem, tables[placed.name], placed, placement, sizes)
            ]
    return [*issues, *_reserved_bytes(problem, placement), *_mixed_mean_modules(problem, placement)]


def _reserved_bytes(problem: Problem, placement: Placement) -> Iterator[Issue]:
    """Yield an issue per table whose cache is to leave as many bytes free as an accelerator of its shards has."""
    for index, placed in enumerate(placement.tables):
        reserved = placed.cache_reserved_bytes
        if reserved is None or placed.compute_kernel not in _CACHED:
            continue
        least = min(problem.cluster.tier_bytes(rank, Tier.HBM) for rank in set(placed.shards.rank.tolist()))
        if reserved >= least:
            yield Issue(
                code="cache-reserved",
                pointer=f"/tables/{index}/cache_reserved_bytes",
                message=f'table "{placed.name}": {reserved:g} reserved bytes leave nothing of the {least:g} of an'
                " accelerator for its cache",
                hint="use less than the memory of an accelerator, or leave cache_reserved_bytes out",
            )


def _broken_sizes(placement: Placement) -> list[tuple[bool, bool, bool]]:
    """Return by table whether some shard's width is no multiple of 4, some shard is empty, some is too wide."""
    shards, of = placement.all_shards(), placement.table_of_shards()
    rules = (
        shards.num_columns % 4 != 0,
        (shards.num_rows < 1) | (shards.num_columns < 1),
        shards.num_columns > MAX_SHARD_COLUMNS,
    )
    breaks = np.zeros((len(rules), len(placement.tables)), dtype=np.bool_)
    for rule, broken in enumerate(rules):
        breaks[rule, of[broken]] = True
    return list(zip(*breaks.tolist(), strict=True))


def _table_issues(
    problem: Problem, table: Table, placed: TablePlacement, placement: Placement, broken_sizes: tuple[bool, bool, bool]
) -> Iterator[tuple[str, str, str]]:
    """Yield (code, message, hint) for each broken rule of one table."""
    shards, scheme, kernel = placed.shards, placed.sharding_type, placed.compute_kernel
    has_wrong_width, has_empty, has_too_wide = broken_sizes
    if table.embedding_dim % 4 or has_wrong_width:
        yield "column-width", "a shard's width is not a multiple of 4 columns", "cut at multiples of 4"
    if has_empty:
        yield "empty-shard", "a shard has no rows or no columns; FBGEMM then updates wrong rows", "use fewer row blocks"
    if has_too_wide:
        yield "column-width", f"a shard is wider than {MAX_SHARD_COLUMNS} columns", "cut it by columns"
    data_type = placed.data_type or table.data_type.name
    if data_type == "bf16":
        yield "data-type", "no kernel of FBGEMM looks up bf16 weights", "use fp16 or fp32 weights"
    elif problem.serving is None and data_type not in _TRAINED_TYPES:
        yield "data-type", f"TorchRec builds no operator of {data_type} weights in training", "use fp16 or fp32 weights"
    if table.optimizer.name in _UNBUILT_OPTIMIZERS:
        yield (
            "optimizer",
            f"TorchRec builds no operator that trains with {table.optimizer.name}",
            "use another optimizer",
        )
    if scheme not in _KERNELS:
        yield "scheme", f"TorchRec has no {scheme.label}", "use a scheme of TorchRec's"
        return
    runs, is_on_hosts = _KERNELS[scheme], problem.cluster.device_tier is Tier.DDR
    if kernel not in runs:
        names = " or ".join(one.label for one in runs)
        yield "kernel", f"{scheme.label} runs with kernel {names}, not {kernel.label}", f"use kernel {names}"
    elif kernel is Kernel.KEY_VALUE and (placed.cache_load_factor or 0.0) > _MAX_KEY_VALUE_SHARE:
        yield (
            "cache-share",
            f"TorchRec caches at most {_MAX_KEY_VALUE_SHARE:g} of the rows of a key_value table",
            f"use cache_load_factor {_MAX_KEY_VALUE_SHARE:g} or less",
        )
    elif is_on_hosts and kernel in _ROWS_ANYWHERE and table.optimizer.name not in _HOST_OPTIMIZERS:
        yield (
            "optimizer",
            f"FBGEMM's kernels do not train with {table.optimizer.name} on hosts without accelerators",
            f"use {', '.join(_HOST_OPTIMIZERS[1:])}, or the kernel dense",
        )
    elif kernel is Kernel.KEY_VALUE and table.optimizer.name not in ("none", "rowwise_adagrad"):
        yield "kernel", f"key_value does not train with {table.optimizer.name} here", "use rowwise_adagrad"
    if kernel is Kernel.KEY_VALUE and scheme is Scheme.COLUMN_WISE and len(np.unique(shards.rank)) < len(shards):
        yield (
            "key-value-pieces",
            "two column pieces of a key_value table on one rank share the cache of one of them",
            "put its pieces on different ranks, or use another scheme or kernel",
        )
    if scheme is Scheme.GRID_SHARD and table.pooling == "mean":
        yield "mean-grid", "grid_shard of a MEAN table adds the means of partial bags", "use another scheme"
    spans_hosts = placement.ranks_per_group > placement.ranks_per_host
    if scheme is Scheme.GRID_SHARD and spans_hosts and table.optimizer.name in _ROW_STATE_OPTIMIZERS:
        message = f"grid_shard over several hosts of a pod cannot be built with the state of {table.optimizer.name}"
        yield "pod-grid", message, "use another scheme, or an optimizer without state for each row"
    if table.pooling == "none" and scheme in (Scheme.TABLE_ROW_WISE, Scheme.TABLE_COLUMN_WISE, Scheme.GRID_SHARD):
        yield "sequence-scheme", f"{scheme.label} of a sequence table is not supported", "use row_wise or table_wise"
    yield from hash_table_issues(table, placed, problem.cluster)
    if issue := _geometry_issue(table, scheme, shards, placement):
        yield "geometry", issue, "see the rules of the runtime in docs/concepts.md"


def _geometry_issue(table: Table, scheme: Scheme, shards: Shards, placement: Placement) -> str | None:
    """Return the first way in which the shards are not the ones that the scheme must have."""
    world, local = placement.world_size, placement.ranks_per_group
    ranks = shards.rank
    if scheme is Scheme.DATA_PARALLEL:
        return None if _are_all(ranks, 0, world) else "data_parallel must list one full copy per rank, in order"
    if scheme is Scheme.TABLE_WISE:
        return None if len(shards) == 1 else f"table_wise has one shard, not {len(shards)}"
    if scheme is Scheme.ROW_WISE:
        if not _are_all(ranks, 0, world):
            return f"row_wise must use the ranks 0..{world - 1} in order"
        return _row_block_issue(table, shards, world)
    if scheme is Scheme.TABLE_ROW_WISE:
        return _group_issue(ranks, local) or _row_block_issue(table, shards, local)
    if scheme in _BY_COLUMNS:
        if scheme is Scheme.TABLE_COLUMN_WISE and len(np.unique(ranks // local)) != 1:
            return f"table_column_wise must keep its shards on one {'host' if placement.pod_size is None else 'pod'}"
        return _left_to_right_issue(shards)
    return _grid_issue(table, shards, local)


def _grid_issue(table: Table, shards: Shards, local: int) -> str | None:
    """grid_shard: whole column pieces after one another, each cut into rows over one host, or pod."""
    if len(shards) % local:
        return f"grid_shard needs {local} shards per column piece"
    pieces = [shards[start : start + local] for start in range(0, len(shards), local)]
    for piece in pieces:
        if np.any(piece.column_offset != piece.column_offset[0]) or np.any(piece.num_columns != piece.num_columns[0]):
            return "grid_shard lists its shards column piece by column piece"
        if issue := _group_issue(piece.rank, local) or _row_block_issue(table, piece, local):
            return issue
    return _left_to_right_issue(shards[::local])


def _are_all(ranks: Ints, first: int, count: int) -> bool:
    """Whether these are ``count`` ranks in order, from ``first`` on."""
    return np.array_equal(ranks, np.arange(first, first + count))


def _group_issue(ranks: Ints, local: int) -> str | None:
    first = int(ranks[0]) if len(ranks) else 0
    if first % local or not _are_all(ranks, first, local):
        return f"row blocks inside a host, or pod, must use all its {local} ranks in order"
    return None


def _row_block_issue(table: Table, shards: Shards, num_blocks: int) -> str | None:
    """Blocks of ceil(rows / n), the last one shorter: any other cut trains silently wrong."""
    block = -(-table.num_embeddings // num_blocks)
    first = np.arange(len(shards)) * block
    want = np.clip(table.num_embeddings - first, 0, block)
    wrong = np.flatnonzero((shards.row_offset != first) | (shards.num_rows != want))
    if not len(wrong):
        return None
    position = int(wrong[0])
    shard = shards[position]
    return (
        f"row block {position} must hold rows {first[position]}..{first[position] + want[position] - 1}"
        f" (blocks of ceil({table.num_embeddings}/{num_blocks}) = {block} rows), not"
        f" {shard.row_offset}..{shard.row_offset + shard.num_rows - 1}; other cuts train silently wrong"
    )


def _left_to_right_issue(shards: Shards) -> str | None:
    offset = np.cumsum(shards.num_columns) - shards.num_columns
    wrong = np.flatnonzero(shards.column_offset != offset)
    if not len(wrong):
        return None
    return f"column pieces must be listed left to right without gaps: expected one at column {offset[wrong[0]]}"


def _mixed_mean_modules(problem: Problem, placement: Placement) -> Iterator[Issue]:
    """Yield an issue per MEAN table cut by rows in a module that has tables not cut by rows."""
    scheme_of = {placed.name: placed.sharding_type for placed in placement.tables}
    position = {placed.name: index for index, placed in enumerate(placement.tables)}
    modules: dict[str, list[Table]] = {}
    for table in problem.tables:
        modules.setdefault(table.module_path, []).append(table)
    for members in modules.values():
        others = [t.name for t in members if scheme_of.get(t.name) not in _ROW_REDUCED and t.name in scheme_of]
        for table in members:
            if table.pooling == "mean" and scheme_of.get(table.name) in _ROW_REDUCED and others:
                yield Issue(
                    code="mean-rows-mixed",
                    pointer=f"/tables/{position[table.name]}",
                    message=(
                        f'table "{table.name}" is MEAN-pooled and cut by rows while "{others[0]}" of the same module'
                        " is not: TorchRec then divides the other tables' outputs once too often"
                    ),
                    hint="cut every table of the module by rows, or this one otherwise",
                )
