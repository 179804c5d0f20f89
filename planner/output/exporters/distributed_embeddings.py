"""A plan as NVIDIA distributed-embeddings decides it: groups of tables, column slices, tables of each rank.

``DistributedEmbedding`` takes no placement: its ``DistEmbeddingStrategy`` makes one from thresholds of table sizes, as
few plans are. But it decides three things, each in a method of its own, and all else follows from them. These are under
``strategy``: what ``init_table_groups`` returns, into how many slices ``maybe_slice_table_column`` cuts each table, and
what ``apply_strategy`` returns. A subclass of a few lines returns them (``docs/runtimes.md``).

What each rank then holds (:mod:`planner.options.runtimes.distributed_embeddings.geometry`) is written beside them, for
people and tests: under ``shards`` of each table, and under ``concatenated`` the tables of a rank that the runtime puts
below one another into one variable, because they are as wide and pooled alike.
"""

from collections.abc import Mapping, Sequence

from planner.domain.formats.canonical_json import digest
from planner.options.runtimes.distributed_embeddings.geometry import Group, Holding, Layout, UnheldGeometry, layout_of
from planner.options.runtimes.distributed_embeddings.rules import NO_MEANS
from planner.output.exporters.context import UnexportablePlan, check_devices, checked_digest, unexportable
from planner.output.exporters.read_shards import shards_of
from planner.output.plan_document import PlanDocument, TableDocument

FORMAT_VERSION = 1
#: Its combiners are spelled as our poolings are.
COMBINERS = ("sum", "mean")
#: Kernels whose rows lie in the memory of the GPU.
_KERNELS = ("dense", "fused")
_MAX_ISSUES = 20


def to_distributed_embeddings(
    document: PlanDocument, *, module_path: str | None = None, device: str = "cuda"
) -> dict[str, object]:
    """Write a plan document for NVIDIA distributed-embeddings.

    Parameters
    ----------
    document
        The plan document of the contract.
    module_path
        Ignored: layers are given to ``DistributedEmbedding``, not found by a path.
    device
        ``cuda``; the kernels of the runtime are for nothing else.

    Returns
    -------
    dict
        ``tables`` in the order in which their layers must be given, ``strategy``, ``concatenated``, ``num_ranks``,
        ``ranks_per_host``, ``plan_digest``, and ``content_sha256``: the SHA-256 of the canonical bytes of all other
        keys.

    Raises
    ------
    UnexportablePlan
        The runtime cannot run the plan, with the reason for each table; or the document is not the one its digest
        names.
    """
    del module_path
    if device != "cuda":
        raise UnexportablePlan(f"distributed-embeddings looks rows up on GPUs; device must be cuda, not {device}.")
    content_digest = checked_digest(document)
    check_devices(document, "distributed_embeddings")
    num_ranks = document["world_size"]
    tables: list[dict[str, object]] = []
    layouts: list[Layout] = []
    held: list[list[Holding]] = []  # of each table
    issues: list[str] = []
    for table in document["tables"]:
        name, shards = table["name"], shards_of(table)
        num_rows, num_columns = int(shards.row_end.max()), int(shards.column_end.max())
        try:
            _check_table(table)
            is_copied = table["sharding_type"] == "data_parallel"
            layout = layout_of(shards, num_rows, num_columns, num_ranks, is_copied=is_copied)
            _check_means(table, layout)
        except UnheldGeometry as error:
            issues.append(f'Table "{name}": {error}.')
            continue
        layouts.append(layout)
        held.append(list(layout.holdings(num_rows, num_columns)))
        tables.append(
            {
                "name": name,
                "input_dim": num_rows,
                "output_dim": num_columns,
                "combiner": table["pooling"],
                "group": layout.group.name.lower(),
                "shards": [_written(one) for one in held[-1]],
            }
        )
    if issues:
        raise unexportable("distributed-embeddings cannot run this plan", issues, "distributed_embeddings")
    groups = [[number for number, layout in enumerate(layouts) if layout.group is group] for group in Group]
    placed = _tables_of_ranks(layouts, groups[Group.TABLE_PARALLEL], num_ranks)
    _check_idle(placed)
    export: dict[str, object] = {
        "format": "distributed_embeddings",
        "format_version": FORMAT_VERSION,
        "plan_digest": content_digest,
        "num_ranks": num_ranks,
        "ranks_per_host": document["ranks_per_host"],
        "tables": tables,
        "strategy": {
            "table_groups": groups,
            "column_slices": [len(layout.ranks) if layout.group is Group.TABLE_PARALLEL else 1 for layout in layouts],
            "table_ids": placed,
        },
        "concatenated": _concatenated(tables, held, groups[Group.TABLE_PARALLEL], num_ranks),
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


def _check_table(table: TableDocument) -> None:
    """Refuse what the runtime does not do, wherever the shards are."""
    kernel, pooling, data_type = table["compute_kernel"], table.get("pooling"), table.get("data_type")
    tiers = {shard["tier"] for shard in table["shards"]}
    if kernel not in _KERNELS or tiers != {"hbm"}:
        raise UnheldGeometry(f"its rows lie in {' and '.join(sorted(tiers))} ({kernel}); they must lie in hbm")
    if pooling is None:
        raise UnheldGeometry("the plan does not say how it is pooled, and so not which tables are concatenated with it")
    if pooling not in COMBINERS:
        raise UnheldGeometry("it is looked up without pooling; one row per sample is exchanged")
    if data_type not in (None, "fp32"):
        raise UnheldGeometry(f"its weights are {data_type}; the lookup kernels are for fp32")


def _check_means(table: TableDocument, layout: Layout) -> None:
    if layout.group is Group.ROW_SLICE and table["pooling"] == "mean":
        raise UnheldGeometry(NO_MEANS)


def _check_idle(placed: Sequence[Sequence[int]]) -> None:
    """Refuse ranks without a table-parallel table beside others with one: they would not take part in exchanges."""
    idle = [str(rank) for rank, numbers in enumerate(placed) if not numbers]
    if not idle or len(idle) == len(placed):
        return
    more = f" and {len(idle) - _MAX_ISSUES} more" if len(idle) > _MAX_ISSUES else ""
    raise UnexportablePlan(
        "distributed-embeddings cannot run this plan: every rank must hold a whole table or a column slice of one, or"
        f" none may, and there is none on rank {', '.join(idle[:_MAX_ISSUES])}{more}. In the spec, give a small table"
        ' constraints "ranks" with one of them and "sharding_types" of "table_wise", or plan for fewer ranks.'
    )


def _written(one: Holding) -> dict[str, int]:
    return {
        "rank": one.rank,
        "row_offset": one.row_offset,
        "num_rows": one.num_rows,
        "column_offset": one.column_offset,
        "num_columns": one.num_columns,
    }


def _tables_of_ranks(layouts: Sequence[Layout], group: Sequence[int], num_ranks: int) -> list[list[int]]:
    """Return the tables of each rank by their places in the group of table-parallel ones."""
    placed: list[list[int]] = [[] for _ in range(num_ranks)]
    for place, number in enumerate(group):
        for rank in layouts[number].ranks:
            placed[rank].append(place)
    return placed


def _concatenated(
    tables: Sequence[Mapping[str, object]], held: Sequence[Sequence[Holding]], group: Sequence[int], num_ranks: int
) -> list[list[dict[str, object]]]:
    """Return the variables of each rank: tables of its own as wide and pooled alike, and their first rows in it."""
    variables: list[dict[tuple[int, object], tuple[list[object], list[int]]]] = [{} for _ in range(num_ranks)]
    for number in group:
        for one in held[number]:
            key = one.num_columns, tables[number]["combiner"]
            names, offsets = variables[one.rank].setdefault(key, ([], [0]))
            names.append(tables[number]["name"])
            offsets.append(offsets[-1] + one.num_rows)
    return [
        [
            {"tables": names, "num_rows": offsets[-1], "num_columns": width, "row_offsets": offsets[:-1]}
            for (width, _), (names, offsets) in of_rank.items()
        ]
        for of_rank in variables
    ]
