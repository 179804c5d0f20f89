"""From the statistics that TorchRec's planner prints to a plan document of ours.

A print-out has of every table its scheme, kernel, width of pieces and the ranks of its shards in rising order. It has
no offsets: they follow from how TorchRec cuts. Row blocks have ceil(rows / n) rows, in the order of the ranks. Column
pieces are all equally wide, so that they are alike but for their place: which rank has which piece is not known, and is
assumed to be in the order of the ranks. Bytes and prices do not depend on that.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from api.schemas.table import TableSpec
from api.specs.input.json import RejectedDocument
from api.specs.plans.printed_table import TITLE, PrintedPlan, PrintedTable, read_printed_plan
from api.specs.plans.rewritten import Piece, PlannedJob, PrintedMemory, RewrittenPlan, table_document
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.table import Table
from planner.domain.problem.table_names import name_in_module
from planner.errors import Issue

_SCHEMES = {
    "DP": Scheme.DATA_PARALLEL,
    "TW": Scheme.TABLE_WISE,
    "CW": Scheme.COLUMN_WISE,
    "RW": Scheme.ROW_WISE,
    "TWRW": Scheme.TABLE_ROW_WISE,
    "TWCW": Scheme.TABLE_COLUMN_WISE,
    "GS": Scheme.GRID_SHARD,
}
_KERNELS = {kernel.label: kernel for kernel in Kernel}
_OTHER_SPEC = "give the spec of the model and the cluster that the print-out is of"
_MAX_ISSUES = 50


def is_planner_statistics(content: object) -> bool:
    """Whether a text has statistics of TorchRec's planner in it."""
    return isinstance(content, str) and TITLE in content


def plan_of_planner_statistics(text: str, job: PlannedJob) -> RewrittenPlan:
    """Rewrite printed statistics as a plan document of ours.

    Raises
    ------
    RejectedDocument
        The print-out cannot be read, or is not of this job's tables and hosts; messages have the line of the log.
    """
    printed = read_printed_plan(text)
    issues: list[Issue] = []
    warnings = [_inferred(printed)]
    placed = []
    for one, table in _matched(printed.tables, job.tables, issues, warnings):
        try:
            placed.append(_placed(one, table, len(printed.rank_hbm_bytes), job.ranks_per_group))
        except ValueError as error:
            issues.append(_issue("print-out-mismatch", one, str(error)))
    if issues:
        raise RejectedDocument(issues[:_MAX_ISSUES], len(issues))
    return RewrittenPlan(
        document={
            "schema_version": 1,
            "world_size": len(printed.rank_hbm_bytes),
            "ranks_per_host": job.ranks_per_host,
            **({} if job.pod_size is None else {"pod_size": job.pod_size}),
            "tables": placed,
        },
        warnings=tuple(warnings),
        printed_memory=_memory(printed),
    )


def _memory(printed: PrintedPlan) -> PrintedMemory | None:
    shared = printed.shared_hbm_bytes
    if shared is None:
        return None
    return PrintedMemory(
        hbm_bytes=tuple(used - shared for used in printed.rank_hbm_bytes),
        rounding_bytes=printed.rounding_bytes,
        counts_empty_bags=True if printed.has_two_storages else None,
    )


def _matched(
    printed: Sequence[PrintedTable],
    tables: Sequence[Table | TableSpec],
    issues: list[Issue],
    warnings: list[Issue],
) -> Iterator[tuple[PrintedTable, Table | TableSpec]]:
    """Yield every printed table with that of the spec: of its path and size, else the only one that it can be."""
    by_path = {
        (path, name_in_module(path, table.name)): table for table in tables for path in (table.module_path or "",)
    }
    free = dict(by_path)
    left = []
    for one in printed:
        key = next((key for key in _keys(one.path) if key in by_path), None)
        if key is not None and key in free and _has_size(free[key], one):
            yield one, free.pop(key)
        else:
            left.append(one)
    for one in left:
        keys = [
            key
            for key, table in free.items()
            if _has_size(table, one)
            and any(key[0] == path and key[1].startswith(name) for path, name in _keys(one.path))
        ]
        if len(keys) == 1:
            table = free.pop(keys[0])
            message = (
                f"{one.path} of {one.num_rows} x {one.num_columns} is taken for {table.name}, the only table it can be"
            )
            warnings.append(_issue("table-name-inferred", one, message, severity="warning"))
            yield one, table
            continue
        same = next((by_path[key] for key in _keys(one.path) if key in by_path), None)
        if same is None:
            message = f"the spec has no table {one.path}"
        else:
            message = (
                f"{one.path} has {one.num_rows} rows of {one.num_columns} columns, and the spec's table"
                f" {same.num_embeddings} of {same.embedding_dim}"
            )
        issues.append(_issue("unknown-table" if same is None else "print-out-mismatch", one, message))


def _keys(path: str) -> Iterator[tuple[str, str]]:
    """Yield how a printed path may be a module's path and a table's name; spec's tables may have no module's path."""
    parts = path.split(".")
    for at in range(len(parts) - 1, -1, -1):
        name = ".".join(parts[at:])
        yield ".".join(parts[:at]), name
        yield "", name


def _has_size(table: Table | TableSpec, one: PrintedTable) -> bool:
    return (table.num_embeddings, table.embedding_dim) == (one.num_rows, one.num_columns)


def _placed(one: PrintedTable, table: Table | TableSpec, world_size: int, ranks_per_group: int) -> dict[str, object]:
    scheme, kernel = _SCHEMES.get(one.sharding), _KERNELS.get(one.kernel)
    if scheme is None:
        raise ValueError(f'no sharding type is abbreviated as "{one.sharding[:20]}": {", ".join(_SCHEMES)}')
    if kernel is None:
        raise ValueError(f'the kernel "{one.kernel[:40]}" is not among {", ".join(_KERNELS)}')
    if one.ranks[-1] >= world_size:
        raise ValueError(f"rank {one.ranks[-1]} is not one of {world_size}")
    placed = table_document(
        table,
        module_path=table.module_path or "",
        sharding_type=scheme.label,
        kernel=kernel,
        pieces=_pieces(one, scheme, world_size, ranks_per_group),
    )
    if kernel.facts.is_cached:
        if one.load_factor is None:
            raise ValueError(f"the kernel {kernel.label} has a cache, and no load factor is printed")
        placed["cache_load_factor"] = one.load_factor
    return placed


def _pieces(one: PrintedTable, scheme: Scheme, world_size: int, ranks_per_group: int) -> Iterator[Piece]:
    """Yield the shards that the scheme has on these ranks; raises ``ValueError`` if it has none."""
    ranks, rows, columns = one.ranks, one.num_rows, one.num_columns
    if scheme is Scheme.DATA_PARALLEL:
        yield from ((rank, 0, rows, 0, columns) for rank in ranks)
        return
    blocks = {Scheme.ROW_WISE: world_size, Scheme.TABLE_ROW_WISE: ranks_per_group, Scheme.GRID_SHARD: ranks_per_group}
    num_blocks = blocks.get(scheme, 1)
    width = columns if one.piece_columns is None else one.piece_columns
    if width < 1 or columns % width:
        raise ValueError(f"{columns} columns are no multiple of pieces of {width}, and TorchRec cuts equal pieces")
    num_pieces = columns // width
    if len(ranks) != num_pieces * num_blocks:
        raise ValueError(
            f"{scheme.label} of {num_pieces} column pieces and {num_blocks} row blocks has {num_pieces * num_blocks}"
            f" shards, and {len(ranks)} ranks are printed"
        )
    order = list(_by_group(ranks, ranks_per_group)) if scheme is Scheme.GRID_SHARD else list(ranks)
    block = -(-rows // num_blocks)
    for at, rank in enumerate(order):
        piece, place = divmod(at, num_blocks)
        first = min(place * block, rows)
        yield rank, first, min(block, rows - first), piece * width, width


def _by_group(ranks: Sequence[int], ranks_per_group: int) -> Iterator[int]:
    """Yield the ranks of each column piece, all of one host, or pod; raises ``ValueError`` if some are missing."""
    count = Counter(ranks)
    for group in sorted({rank // ranks_per_group for rank in ranks}):
        members = range(group * ranks_per_group, (group + 1) * ranks_per_group)
        pieces = {count[rank] for rank in members}
        if len(pieces) != 1:
            raise ValueError(
                f"grid_shard has whole hosts, or pods, of {ranks_per_group} ranks, and of number {group} only some are"
                " printed"
            )
        yield from list(members) * pieces.pop()


def _inferred(printed: PrintedPlan) -> Issue:
    return Issue(
        code="print-out-inferred",
        pointer="",
        message=(
            f"the print-out of {len(printed.tables)} tables has no offsets: row blocks are taken to be of"
            " ceil(rows / n) in the order of ranks, and which rank has which of the equal column pieces is assumed"
        ),
        hint="bytes and prices do not depend on it; a plan for a job that runs is that of ShardingPlan._serialize()",
        severity="warning",
    )


def _issue(code: str, one: PrintedTable, message: str, *, severity: str = "error") -> Issue:
    text = f"line {one.line}: {message}"
    return Issue(code=code, pointer="", message=text, hint=_OTHER_SPEC, severity=severity)
