"""A plan as NVIDIA distributed-embeddings decides it: groups of tables, column slices, tables of each rank.

``DistributedEmbedding`` takes no placement: its ``DistEmbeddingStrategy`` makes one from thresholds of table sizes, as
few plans are. But it decides three things, each in a method of its own, and all else follows from them. These are under
``strategy``: what ``init_table_groups`` returns, into how many slices ``maybe_slice_table_column`` cuts each table, and
what ``apply_strategy`` returns. A subclass of a few lines returns them (``docs/runtimes.md``).

What each rank then holds (:mod:`planner.options.runtimes.distributed_embeddings.geometry`) is written next to them, for
people and tests: under ``shards`` of each table, and under ``concatenated`` the tables of a rank that the runtime puts
below one another into one variable, because they are as wide and pooled alike.
"""

from collections.abc import Mapping, Sequence

from planner.domain.plan.placement import TablePlacement
from planner.options.runtimes.distributed_embeddings.geometry import Group, Holding, Layout, layout_of
from planner.options.runtimes.distributed_embeddings.rules import NO_MEANS
from planner.options.runtimes.export import MAX_LISTED, PlanToExport, UnexportablePlan, read_tables, require_gpus
from planner.options.runtimes.geometry import UnheldGeometry, extent
from planner.options.runtimes.on_device import check_stored


def to_distributed_embeddings(plan: PlanToExport) -> dict[str, object]:
    """Write a plan for NVIDIA distributed-embeddings; the layers of ``tables`` must be given in their order."""
    require_gpus(plan, "distributed-embeddings looks rows up on GPUs")
    num_ranks = plan.placement.world_size
    found = read_tables(plan, _layout, "distributed-embeddings cannot run this plan")
    layouts = [layout for _, layout in found]
    held = [list(layout.holdings()) for layout in layouts]  # of each table
    tables: list[dict[str, object]] = [
        {
            "name": placed.name,
            "input_dim": layout.num_rows,
            "output_dim": layout.num_columns,
            "combiner": placed.pooling,  # combiners are spelled as our poolings are
            "group": layout.group.name.lower(),
            "shards": [one._asdict() for one in holdings],
        }
        for (placed, layout), holdings in zip(found, held, strict=True)
    ]
    groups = [[number for number, layout in enumerate(layouts) if layout.group is group] for group in Group]
    placed = _tables_of_ranks(layouts, groups[Group.TABLE_PARALLEL], num_ranks)
    _check_idle(placed)
    return {
        "num_ranks": num_ranks,
        "ranks_per_host": plan.placement.ranks_per_host,
        "tables": tables,
        "strategy": {
            "table_groups": groups,
            "column_slices": [len(layout.ranks) if layout.group is Group.TABLE_PARALLEL else 1 for layout in layouts],
            "table_ids": placed,
        },
        "concatenated": _concatenated(tables, held, groups[Group.TABLE_PARALLEL], num_ranks),
    }


def _layout(placed: TablePlacement, num_ranks: int) -> Layout:
    if not placed.pooling:
        raise UnheldGeometry("the plan does not say how it is pooled, and so not which tables are concatenated with it")
    check_stored(
        placed,
        hbm_rule="they must lie in hbm",
        pooling_rule="one row per sample is exchanged",
        fp32_rule="the lookup kernels are for fp32",
    )
    layout = layout_of(placed, extent(placed), num_ranks)
    if layout.group is Group.ROW_SLICE and placed.pooling == "mean":
        raise UnheldGeometry(NO_MEANS)
    return layout


def _check_idle(placed: Sequence[Sequence[int]]) -> None:
    """Reject ranks without a table-parallel table if others have one: they would not take part in exchanges."""
    idle = [str(rank) for rank, numbers in enumerate(placed) if not numbers]
    if not idle or len(idle) == len(placed):
        return
    more = f" and {len(idle) - MAX_LISTED} more" if len(idle) > MAX_LISTED else ""
    raise UnexportablePlan(
        "distributed-embeddings cannot run this plan: every rank must hold a whole table or a column slice of one, or"
        f" none may, and there is none on rank {', '.join(idle[:MAX_LISTED])}{more}. In the spec, give a small table"
        ' constraints "ranks" with one of them and "sharding_types" of "table_wise", or plan for fewer ranks.'
    )


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
