"""A plan as HugeCTR's embedding collection takes it: tables, shard matrix, table groups, compression.

``shard_matrix``, ``shard_strategy`` and ``compression_strategy`` are the arguments of
``hugectr.EmbeddingCollectionConfig.shard``. Which rows and columns each GPU then holds follows from them
(:mod:`planner.options.runtimes.hugectr.geometry`) and is written next to them, under ``shards`` of each table, for
people and tests: HugeCTR reads none of it.

Row blocks of a plan are ranges of ids, HugeCTR's are the ids of one remainder. The export keeps the GPUs, and with them
the bytes and the expected lookups of each; it says ``"rows": "modulo"``, because the ids that a GPU holds are others.
"""

from collections.abc import Iterator, Mapping, Sequence

from planner.domain.plan.placement import TablePlacement
from planner.options.runtimes.export import PlanToExport, read_tables, require_gpus
from planner.options.runtimes.geometry import UnheldGeometry, extent
from planner.options.runtimes.hugectr.geometry import Layout, layout_of
from planner.options.runtimes.on_device import check_stored

#: The mode of hash tables that are dynamic tables, and their vocabulary size.
MODE = "hugectr"
DYNAMIC = -1
#: HugeCTR's combiners by our poolings.
COMBINERS = {"sum": "sum", "mean": "average"}


def to_hugectr(plan: PlanToExport) -> dict[str, object]:
    """Write a plan for HugeCTR.

    ``tables``, ``shard_matrix``, ``shard_strategy``, ``compression_strategy``, ``comm_strategy`` and ``vvgpu`` are as
    HugeCTR takes them.
    """
    require_gpus(plan, "HugeCTR keeps tables on GPUs")
    num_gpus, gpus_per_node = plan.placement.world_size, plan.placement.ranks_per_host
    found = read_tables(
        plan, _layout, "HugeCTR's embedding collection cannot run this plan", _shared_issues(plan.placement.tables)
    )
    layouts = {placed.name: layout for placed, layout in found}
    copied = [name for name, layout in layouts.items() if layout.is_copied]
    cut = {name: layout.num_pieces for name, layout in layouts.items() if not layout.is_copied}
    # Copied tables, and the others, with the number of column pieces above 1.
    groups = (("dp", copied), ("mp", [name if number == 1 else [name, number] for name, number in cut.items()]))
    return {
        "num_gpus": num_gpus,
        "num_nodes": num_gpus // gpus_per_node,
        "vvgpu": [list(range(gpus_per_node)) for _ in range(num_gpus // gpus_per_node)],
        "comm_strategy": "Uniform",
        "rows": "modulo",
        "tables": [_table(placed, layout) for placed, layout in found],
        "shard_matrix": _matrix(layouts, num_gpus),
        "shard_strategy": [[kind, names] for kind, names in groups if names],
        # GPUs pool their rows before they send them, which is what plans are priced as.
        "compression_strategy": {"Reduction": list(cut)} if cut else {},
    }


def _shared_issues(planned: Sequence[TablePlacement]) -> Iterator[str]:
    """Yield tables of a fixed size next to dynamic ones, which one collection cannot have."""
    first = next((placed.name for placed in planned if placed.hash_table_mode), None)
    for placed in planned:
        if first is not None and not placed.hash_table_mode:
            yield f'Table "{placed.name}": it has a fixed size next to "{first}", which has none.'


def _layout(placed: TablePlacement, num_gpus: int) -> Layout:
    if placed.hash_table_mode not in ("", MODE):
        raise UnheldGeometry(f"it is a hash table of {placed.hash_table_mode}; dynamic tables are {MODE}")
    check_stored(
        placed,
        hbm_rule="they must lie in hbm",
        pooling_rule="concat writes a fixed number of rows per sample instead",
        fp32_rule="they must be fp32, which HugeCTR keeps all weights in",
    )
    return layout_of(placed, extent(placed), num_gpus)


def _table(placed: TablePlacement, layout: Layout) -> dict[str, object]:
    return {
        "name": placed.name,
        "max_vocabulary_size": DYNAMIC if placed.hash_table_mode else layout.num_rows,
        "ev_size": layout.num_columns,
        "combiner": COMBINERS.get(placed.pooling),
        "shards": [one._asdict() for one in layout.holdings()],
    }


def _matrix(layouts: Mapping[str, Layout], num_gpus: int) -> list[list[str]]:
    """Return the names of the tables that each GPU has all or part of."""
    held: list[list[str]] = [[] for _ in range(num_gpus)]
    for name, layout in layouts.items():
        for gpu in layout.gpus:
            held[gpu].append(name)
    return held
