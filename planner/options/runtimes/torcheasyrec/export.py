"""A plan as TorchEasyRec's config takes it: the constraints of each table's features, and what stays undecided.

TorchEasyRec plans by itself when it starts, with TorchRec's planner. ``embedding_constraints`` of a feature leave it
one sharding type and one kernel for the feature's table; cuts follow from them
(:mod:`planner.options.runtimes.torcheasyrec.config`). Ranks follow for some tables and not for others, and no field
asks for them: of those, ``rank`` of each shard is ``null`` here and ``planned_rank`` is where the plan has it.

The ``plan`` file that TorchEasyRec keeps next to a checkpoint is no way in: of what it says, sharding types alone are
read back, for tables whose features name none.
"""

from collections.abc import Iterator, Sequence

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.options.runtimes.export import PlanToExport, read_tables, require_gpus
from planner.options.runtimes.geometry import UnheldGeometry, extent
from planner.options.runtimes.torcheasyrec.config import (
    DATA_TYPES,
    HASH_TABLE_KERNEL,
    check_asked,
    has_fixed_ranks,
    in_order,
    name_issue,
)
from planner.options.runtimes.torchrec.rules import ROW_SCHEMES

_DEFAULT_ENDING, _WIDE_ENDING = "_emb", "_wide"


def to_torcheasyrec(plan: PlanToExport) -> dict[str, object]:
    """Write a plan for TorchEasyRec.

    ``tables`` have the text of their constraints, the shards that TorchEasyRec's planner will make of each, and the
    ranks that are certain; ``nnodes`` and ``nproc_per_node`` are for ``torchrun``. ``global_embedding_constraints``
    is there if some table has zch.
    """
    require_gpus(plan, "TorchEasyRec takes a plan on GPUs alone")
    placement = plan.placement
    names = {placed.name for placed in placement.tables}
    found = read_tables(
        plan,
        lambda placed, _: _table(placed, names, placement),
        "TorchEasyRec cannot be made to shard so",
        _shared_issues(placement.tables, names),
    )
    tables = [table for _, table in found]
    return {
        "nnodes": placement.world_size // placement.ranks_per_host,
        "nproc_per_node": placement.ranks_per_host,
        "tables": tables,
        **({"global_embedding_constraints": _of_all()} if any(one["zch_size"] for one in tables) else {}),
        "placed_by_planner": [one["name"] for one in tables if one["ranks"] == "planner"],
        "updated_by_dense_optimizer": [one["name"] for one in tables if one["sharding_type"] == "data_parallel"],
    }


def _table(placed: TablePlacement, names: set[str], placement: Placement) -> dict[str, object]:
    scheme, kernel = placed.sharding_type, placed.compute_kernel
    num_rows, num_columns = extent(placed)
    if wrong_name := name_issue(placed.name):
        raise UnheldGeometry(f"its name {wrong_name}")
    _check_storage(placed)
    if placed.hash_table_mode not in ("", "zch"):
        raise UnheldGeometry(f"it is a hash table of {placed.hash_table_mode}; features have zch alone")
    check_asked(placed, (num_rows, num_columns), placed.pooling, placement)
    is_fixed = has_fixed_ranks(scheme, placement)
    embedding_name = _embedding_name(placed.name, names)
    return {
        "name": placed.name,
        "embedding_name": embedding_name,
        "feature_name": embedding_name.removesuffix(_DEFAULT_ENDING) if _is_default(embedding_name) else None,
        "num_embeddings": num_rows,
        "zch_size": num_rows if placed.hash_table_mode else None,
        "embedding_dim": num_columns,
        "data_type": DATA_TYPES.get(placed.data_type),
        "pooling": placed.pooling or None,
        "sharding_type": scheme.label,
        "compute_kernel": kernel.label,
        "embedding_constraints": constraints_text(scheme, kernel),
        "ranks": "fixed" if is_fixed else "planner",
        "shards": [
            {
                "rank": rank if is_fixed else None,
                "planned_rank": rank,
                "row_offset": row_offset,
                "num_rows": rows,
                "column_offset": column_offset,
                "num_columns": columns,
            }
            for rank, row_offset, rows, column_offset, columns, _ in in_order(placed.shards).columns.T.tolist()
        ],
    }


def constraints_text(scheme: Scheme, kernel: Kernel) -> str:
    """Return the field that leaves TorchEasyRec's planner one option, in protobuf's text format.

    The words are ours and the runtime's, letters and underscores, so that nothing in them needs an escape.
    """
    return f'embedding_constraints {{\n  sharding_types: "{scheme.label}"\n  compute_kernels: "{kernel.label}"\n}}\n'


def _of_all() -> str:
    """Return the field that says the same of every table whose features state nothing, or may not: those with zch."""
    return constraints_text(Scheme.ROW_WISE, HASH_TABLE_KERNEL).replace("embedding_", "global_embedding_", 1)


def _embedding_name(name: str, names: set[str]) -> str:
    """Return what features call a table: a group of type WIDE makes ``NAME_wide`` of the features of ``NAME``."""
    narrow = name.removesuffix(_WIDE_ENDING)
    return narrow if narrow != name and (narrow in names or _is_default(narrow)) else name


def _is_default(embedding_name: str) -> bool:
    """Whether a feature of no ``embedding_name`` may have made the name: its own, and an ending."""
    return embedding_name.endswith(_DEFAULT_ENDING) and embedding_name != _DEFAULT_ENDING


def _shared_issues(planned: Sequence[TablePlacement], names: set[str]) -> Iterator[str]:
    """Yield why tables cannot be asked for together, whatever each of them is."""
    yield from _wide_issues(planned, names)
    by_module: dict[str, list[TablePlacement]] = {}
    for placed in planned:
        if placed.pooling != "none":  # tables of sequences are in modules of their own
            by_module.setdefault(placed.module_path, []).append(placed)
    for members in by_module.values():
        other = next((placed.name for placed in members if placed.sharding_type not in ROW_SCHEMES), None)
        for placed in members:
            if other is not None and placed.pooling == "mean" and placed.sharding_type in ROW_SCHEMES:
                yield (
                    f'Table "{placed.name}": it is a mean cut by rows next to "{other}", which is not cut so, and'
                    " TorchRec then divides the others once too often."
                )


def _wide_issues(planned: Sequence[TablePlacement], names: set[str]) -> Iterator[str]:
    first: dict[str, TablePlacement] = {}
    for placed in planned:
        other = first.setdefault(_embedding_name(placed.name, names), placed)
        if (other.sharding_type, other.compute_kernel) != (placed.sharding_type, placed.compute_kernel):
            yield (
                f'Table "{placed.name}": it has the features of "{other.name}", whose constraints are its own, and'
                " another sharding type or kernel."
            )


def _check_storage(placed: TablePlacement) -> None:
    kernel = placed.compute_kernel
    if placed.data_type not in ("", *DATA_TYPES):
        raise UnheldGeometry(f"its weights are {placed.data_type}; they must be {' or '.join(DATA_TYPES)}")
    tiers = {Tier(tier).label for tier in placed.shards.tier.tolist()}
    tier = kernel.tier(Tier.HBM).label
    if kernel is not Kernel.KEY_VALUE and tiers != {tier}:
        listed = " and ".join(sorted(tiers))
        raise UnheldGeometry(f"its rows lie in {listed}; {kernel.label} keeps all of them in {tier}")
