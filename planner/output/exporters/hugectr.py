"""A plan as HugeCTR's embedding collection takes it: tables, shard matrix, table groups, compression.

``shard_matrix``, ``shard_strategy`` and ``compression_strategy`` are the arguments of
``hugectr.EmbeddingCollectionConfig.shard``. Which rows and columns each GPU then holds follows from them
(:mod:`planner.options.runtimes.hugectr.geometry`) and is written beside them, under ``shards`` of each table, for
people and tests: HugeCTR reads none of it.

Row blocks of a plan are ranges of ids, HugeCTR's are the ids of one remainder. The export keeps the GPUs, and with them
the bytes and the expected lookups of each; it says ``"rows": "modulo"``, because the ids that a GPU holds are others.
"""

from collections.abc import Mapping

from planner.domain.formats.canonical_json import digest
from planner.domain.plan.shards import Shards
from planner.options.runtimes.hugectr.geometry import Holding, Layout, UnheldGeometry, check_copies, layout_of
from planner.output.exporters.context import UnexportablePlan, check_devices, checked_digest, unexportable
from planner.output.exporters.read_shards import shards_of
from planner.output.plan_document import PlanDocument, TableDocument

FORMAT_VERSION = 1
#: HugeCTR's combiners by our poolings.
COMBINERS = {"sum": "sum", "mean": "average"}
#: Kernels whose rows lie in the memory of the GPU.
_KERNELS = ("dense", "fused")


def to_hugectr(document: PlanDocument, *, module_path: str | None = None, device: str = "cuda") -> dict[str, object]:
    """Write a plan document for HugeCTR.

    Parameters
    ----------
    document
        The plan document of the contract.
    module_path
        Ignored: an embedding collection is not found by a path.
    device
        ``cuda``; HugeCTR runs on nothing else.

    Returns
    -------
    dict
        ``tables``, ``shard_matrix``, ``shard_strategy``, ``compression_strategy``, ``comm_strategy`` and ``vvgpu`` as
        HugeCTR takes them, with ``num_gpus``, ``num_nodes``, ``rows``, ``plan_digest``, and ``content_sha256``: the
        SHA-256 of the canonical bytes of all other keys.

    Raises
    ------
    UnexportablePlan
        HugeCTR cannot run the plan, with the reason for each table; or the document is not the one its digest names.
    """
    del module_path
    if device != "cuda":
        raise UnexportablePlan(f"HugeCTR keeps tables on GPUs; device must be cuda, not {device}.")
    content_digest = checked_digest(document)
    check_devices(document, "hugectr")
    num_gpus, gpus_per_node = document["world_size"], document["ranks_per_host"]
    tables: list[dict[str, object]] = []
    layouts: dict[str, Layout | None] = {}  # None for a table that is copied to every GPU
    issues: list[str] = []
    for table in document["tables"]:
        name, shards = table["name"], shards_of(table)
        num_rows, num_columns = int(shards.row_end.max()), int(shards.column_end.max())
        try:
            _check_table(table)
            layout = _layout(table, shards, num_rows, num_columns, num_gpus)
        except UnheldGeometry as error:
            issues.append(f'Table "{name}": {error}.')
            continue
        layouts[name] = layout
        tables.append(
            {
                "name": name,
                "max_vocabulary_size": num_rows,
                "ev_size": num_columns,
                "combiner": COMBINERS.get(table.get("pooling", "")),
                "shards": _holdings(layout, num_rows, num_columns, num_gpus),
            }
        )
    if issues:
        raise unexportable("HugeCTR's embedding collection cannot run this plan", issues, "hugectr")
    export: dict[str, object] = {
        "format": "hugectr",
        "format_version": FORMAT_VERSION,
        "plan_digest": content_digest,
        "num_gpus": num_gpus,
        "num_nodes": num_gpus // gpus_per_node,
        "vvgpu": [list(range(gpus_per_node)) for _ in range(num_gpus // gpus_per_node)],
        "comm_strategy": "Uniform",
        "rows": "modulo",
        "tables": tables,
        "shard_matrix": _matrix(layouts, num_gpus),
        "shard_strategy": _strategy(layouts),
        "compression_strategy": _compression(layouts),
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


def _check_table(table: TableDocument) -> None:
    """Refuse what an embedding collection does not do, wherever the shards are."""
    kernel, pooling, data_type = table["compute_kernel"], table.get("pooling"), table.get("data_type")
    tiers = {shard["tier"] for shard in table["shards"]}
    if kernel not in _KERNELS or tiers != {"hbm"}:
        raise UnheldGeometry(f"its rows lie in {' and '.join(sorted(tiers))} ({kernel}); they must lie in hbm")
    if pooling == "none":
        raise UnheldGeometry("it is looked up without pooling; concat writes a fixed number of rows per sample instead")
    if data_type not in (None, "fp32"):
        raise UnheldGeometry(f"its weights are {data_type}; they must be fp32, which HugeCTR keeps all weights in")


def _layout(table: TableDocument, shards: Shards, num_rows: int, num_columns: int, num_gpus: int) -> Layout | None:
    if table["sharding_type"] != "data_parallel":
        return layout_of(shards, num_rows, num_columns)
    check_copies(shards, num_rows, num_columns, num_gpus)
    return None


def _holdings(layout: Layout | None, num_rows: int, num_columns: int, num_gpus: int) -> list[dict[str, int]]:
    """Return what every GPU that has part of a table holds of it."""
    if layout is not None:
        return [_written(one) for one in layout.holdings(num_rows, num_columns)]
    alone = (Layout(gpus=(gpu,), num_pieces=1) for gpu in range(num_gpus))
    return [_written(one) for layout in alone for one in layout.holdings(num_rows, num_columns)]


def _written(one: Holding) -> dict[str, int]:
    return {
        "gpu": one.gpu,
        "first_row": one.first_row,
        "row_step": one.row_step,
        "num_rows": one.num_rows,
        "column_offset": one.column_offset,
        "num_columns": one.num_columns,
    }


def _matrix(layouts: Mapping[str, Layout | None], num_gpus: int) -> list[list[str]]:
    """Return the names of the tables that each GPU has all or part of."""
    held: list[list[str]] = [[] for _ in range(num_gpus)]
    for name, layout in layouts.items():
        for gpu in range(num_gpus) if layout is None else layout.gpus:
            held[gpu].append(name)
    return held


def _strategy(layouts: Mapping[str, Layout | None]) -> list[list[object]]:
    """Return the groups of tables: those that are copied, and the others, with the number of column pieces above 1."""
    copied = [name for name, layout in layouts.items() if layout is None]
    cut = [
        name if layout.num_pieces == 1 else [name, layout.num_pieces]
        for name, layout in layouts.items()
        if layout is not None
    ]
    return [[kind, names] for kind, names in (("dp", copied), ("mp", cut)) if names]


def _compression(layouts: Mapping[str, Layout | None]) -> dict[str, list[str]]:
    """Return that GPUs pool their rows before they send them, which is what plans are priced as."""
    cut = [name for name, layout in layouts.items() if layout is not None]
    return {"Reduction": cut} if cut else {}
