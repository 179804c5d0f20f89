"""Plans written by hand, with every liberty that the rules leave: no planner is involved."""

from collections.abc import Callable, Sequence

from api.client import plan_digest
from tests.support.torchrec.model import TableSpec

#: Tables of all schemes in one module, several features per table, one feature in two tables.
#: Rows are chosen so that no row cut comes out even: 77 over 4 ranks is 20, 20, 20, 17.
MIXED = (
    TableSpec(name="copied", rows=40, columns=8, features=("a",), scheme="data_parallel", kernel="dense"),
    TableSpec(
        name="copied_mean", rows=21, columns=12, features=("b",), scheme="data_parallel", kernel="dense", pooling="mean"
    ),
    TableSpec(name="whole", rows=50, columns=16, features=("c", "d", "shared"), scheme="table_wise"),
    TableSpec(name="whole_mean", rows=30, columns=8, features=("e",), scheme="table_wise", pooling="mean"),
    TableSpec(name="whole_dense", rows=25, columns=8, features=("e2",), scheme="table_wise", kernel="dense"),
    TableSpec(name="columns", rows=60, columns=24, features=("f", "g"), scheme="column_wise"),
    TableSpec(name="columns_mean", rows=35, columns=16, features=("h",), scheme="column_wise", pooling="mean"),
    TableSpec(name="rows", rows=77, columns=12, features=("i", "shared"), scheme="row_wise"),
    TableSpec(name="host_rows", rows=33, columns=20, features=("j", "k"), scheme="table_row_wise"),
    TableSpec(name="host_columns", rows=45, columns=16, features=("l",), scheme="table_column_wise"),
    TableSpec(
        name="host_columns_mean", rows=45, columns=16, features=("m",), scheme="table_column_wise", pooling="mean"
    ),
    TableSpec(name="grid", rows=51, columns=24, features=("n", "o"), scheme="grid_shard"),
    TableSpec(
        name="mean_rows",
        rows=61,
        columns=8,
        features=("a",),
        scheme="row_wise",
        pooling="mean",
        module_path="sparse_arch.mean",
    ),
    TableSpec(
        name="mean_host_rows",
        rows=43,
        columns=12,
        features=("p",),
        scheme="table_row_wise",
        pooling="mean",
        module_path="sparse_arch.mean",
    ),
    TableSpec(
        name="weighted_rows", rows=41, columns=8, features=("q",), scheme="row_wise", module_path="sparse_arch.weighted"
    ),
    TableSpec(
        name="weighted_columns",
        rows=20,
        columns=8,
        features=("r",),
        scheme="column_wise",
        module_path="sparse_arch.weighted",
    ),
    TableSpec(
        name="weighted_copied",
        rows=20,
        columns=8,
        features=("s",),
        scheme="data_parallel",
        kernel="dense",
        module_path="sparse_arch.weighted",
    ),
)

#: Rows that come back one by one, cut in every way that TorchRec has for them on CPU; beside bags of their features.
SEQUENCES = (
    TableSpec(name="bags", rows=40, columns=8, features=("a", "b"), scheme="row_wise"),
    *(
        TableSpec(
            name=f"sequence_{scheme}",
            rows=rows,
            columns=8,
            features=features,
            scheme=scheme,
            pooling="none",
            module_path="sparse_arch.sequence",
        )
        for scheme, rows, features in (
            ("table_wise", 31, ("a", "shared")),
            ("column_wise", 23, ("b",)),
            ("row_wise", 77, ("c", "shared")),
        )
    ),
)

#: Two tables that leave all ranks but one without any.
LONELY = (
    TableSpec(name="one", rows=30, columns=8, features=("a",), scheme="table_wise"),
    TableSpec(name="two", rows=20, columns=4, features=("b", "c"), scheme="table_wise"),
)

Cut = tuple[int, int, int, int, int]  # rank, row offset, rows, column offset, columns


def hand_plan(
    tables: Sequence[TableSpec], world_size: int, ranks_per_host: int, pod_size: int | None = None
) -> dict[str, object]:
    """A plan that cuts every table by its scheme; over pods in the place of hosts, if there are pods."""
    group = pod_size or ranks_per_host
    plan: dict[str, object] = {
        "schema_version": 1,
        "spec_digest": "sha256:" + "0" * 64,
        "world_size": world_size,
        "ranks_per_host": ranks_per_host,
        **({} if pod_size is None else {"pod_size": pod_size}),
        "tables": [table_document(t, CUTS[t.scheme](t, world_size, group)) for t in tables],
    }
    return {"plan_digest": plan_digest(plan), **plan}


def table_document(table: TableSpec, cuts: Sequence[Cut]) -> dict[str, object]:
    """A table of a plan from the rectangles of its shards."""
    names = ("rank", "row_offset", "num_rows", "column_offset", "num_columns")
    return {
        "name": table.name,
        "module_path": table.module_path,
        "sharding_type": table.scheme,
        "compute_kernel": table.kernel,
        "cache_load_factor": None,
        "shards": [{**dict(zip(names, cut, strict=True)), "tier": "hbm", "bytes": 0} for cut in cuts],
    }


def _copies(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    return [(rank, 0, table.rows, 0, table.columns) for rank in range(world_size)]


def _whole(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    return [(world_size - 1, 0, table.rows, 0, table.columns)]


def _columns(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    """Unequal widths where there are three pieces; the last rank twice, and not in order."""
    last = world_size - 1
    if table.columns == 8:
        return [(last, 0, table.rows, 0, 4), (0, 0, table.rows, 4, 4)]
    middle = table.columns - 8
    return [(last, 0, table.rows, 0, 4), (0, 0, table.rows, 4, middle), (last, 0, table.rows, 4 + middle, 4)]


def _rows(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    return _row_blocks(table, range(world_size), 0, table.columns)


def _host_rows(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    """On the last host."""
    return _row_blocks(table, range(world_size - ranks_per_host, world_size), 0, table.columns)


def _host_columns(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    """On the last host (or pod), its last rank before its first."""
    first = world_size - ranks_per_host
    return [(world_size - 1, 0, table.rows, 0, 4), (first, 0, table.rows, 4, table.columns - 4)]


def _grid(table: TableSpec, world_size: int, ranks_per_host: int) -> list[Cut]:
    """Three column pieces: last host, first host, last host again."""
    last, first = range(world_size - ranks_per_host, world_size), range(ranks_per_host)
    return [
        *_row_blocks(table, last, 0, 4),
        *_row_blocks(table, first, 4, 8),
        *_row_blocks(table, last, 12, table.columns - 12),
    ]


def _row_blocks(table: TableSpec, ranks: range, column: int, width: int) -> list[Cut]:
    block = -(-table.rows // len(ranks))
    return [(r, i * block, min(block, table.rows - i * block), column, width) for i, r in enumerate(ranks)]


CUTS: dict[str, Callable[[TableSpec, int, int], list[Cut]]] = {
    "data_parallel": _copies,
    "table_wise": _whole,
    "column_wise": _columns,
    "row_wise": _rows,
    "table_row_wise": _host_rows,
    "table_column_wise": _host_columns,
    "grid_shard": _grid,
}
