"""A plan as TorchEasyRec's config takes it: the constraints of each table's features, and what stays undecided.

TorchEasyRec plans by itself when it starts, with TorchRec's planner. ``embedding_constraints`` of a feature leave it
one sharding type and one kernel for the feature's table; cuts follow from them
(:mod:`planner.options.runtimes.torcheasyrec.config`). Ranks follow for some tables and not for others, and no field
asks for them: of those, ``rank`` of each shard is ``null`` here and ``planned_rank`` is where the plan has it.

The ``plan`` file that TorchEasyRec keeps beside a checkpoint is no way in: of what it says, sharding types alone are
read back, for tables whose features name none.
"""

from collections.abc import Iterator, Sequence

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.formats.canonical_json import digest
from planner.options.runtimes.torcheasyrec.config import (
    DATA_TYPES,
    UndictatedTable,
    check_kernel,
    check_pooling,
    check_shards,
    has_fixed_ranks,
    in_order,
    name_issue,
)
from planner.options.runtimes.torchrec.rules import ROW_SCHEMES
from planner.output.exporters.context import UnexportablePlan, check_devices, checked_digest, unexportable
from planner.output.exporters.read_shards import shards_of
from planner.output.plan_document import PlanDocument, TableDocument

FORMAT_VERSION = 1
_DEFAULT_ENDING, _WIDE_ENDING = "_emb", "_wide"
_TIER_OF_KERNEL = {"fused_uvm": "ddr", "fused_uvm_caching": "ddr"}


def to_torcheasyrec(
    document: PlanDocument, *, module_path: str | None = None, device: str = "cuda"
) -> dict[str, object]:
    """Write a plan document for TorchEasyRec.

    Parameters
    ----------
    document
        The plan document of the contract.
    module_path
        Ignored: constraints stand in features, and TorchEasyRec finds the modules of their tables.
    device
        ``cuda``: on CPUs its planner offers no cuts by rows, and tables of sequences stay whole.

    Returns
    -------
    dict
        ``tables`` with the text of their constraints, the shards that TorchEasyRec's planner will make of each, and the
        ranks that are certain; ``placed_by_planner`` and ``updated_by_dense_optimizer``, names of tables;
        ``nnodes`` and ``nproc_per_node`` for ``torchrun``; ``plan_digest``, and ``content_sha256``: the SHA-256 of the
        canonical bytes of all other keys.

    Raises
    ------
    UnexportablePlan
        No config makes TorchEasyRec cut the tables so, with the reason for each table; or the document is not the one
        its digest names.
    """
    del module_path
    if device != "cuda":
        raise UnexportablePlan(f"TorchEasyRec is told how to shard on GPUs alone; device must be cuda, not {device}.")
    content_digest = checked_digest(document)
    check_devices(document, "torcheasyrec")
    world_size, ranks_per_host = document["world_size"], document["ranks_per_host"]
    num_hosts = world_size // ranks_per_host
    planned = document["tables"]
    names = {table["name"] for table in planned}
    tables: list[dict[str, object]] = []
    issues = list(_shared_issues(planned, names))
    for table in planned:
        try:
            tables.append(_exported(table, names, num_hosts, ranks_per_host))
        except UndictatedTable as error:
            issues.append(f'Table "{table["name"]}": {error}.')
    if issues:
        raise unexportable("TorchEasyRec cannot be made to shard so", issues, "torcheasyrec")
    export: dict[str, object] = {
        "format": "torcheasyrec",
        "format_version": FORMAT_VERSION,
        "plan_digest": content_digest,
        "nnodes": num_hosts,
        "nproc_per_node": ranks_per_host,
        "tables": tables,
        "placed_by_planner": [one["name"] for one in tables if one["ranks"] == "planner"],
        "updated_by_dense_optimizer": [one["name"] for one in tables if one["sharding_type"] == "data_parallel"],
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


def _exported(table: TableDocument, names: set[str], num_hosts: int, ranks_per_host: int) -> dict[str, object]:
    shards = in_order(shards_of(table))
    scheme, kernel = _scheme(table), Kernel.from_label(table["compute_kernel"])
    num_rows, num_columns = int(shards.row_end.max()), int(shards.column_end.max())
    unnamed = name_issue(table["name"])
    if unnamed is not None:
        raise UndictatedTable(unnamed)
    _check_storage(table)
    check_kernel(scheme, kernel, table.get("cache_load_factor"))
    check_pooling(scheme, table.get("pooling"))
    check_shards(scheme, shards, num_rows, num_columns, num_hosts=num_hosts, ranks_per_host=ranks_per_host)
    is_fixed = has_fixed_ranks(scheme, num_hosts=num_hosts, ranks_per_host=ranks_per_host)
    embedding_name = _embedding_name(table["name"], names)
    return {
        "name": table["name"],
        "embedding_name": embedding_name,
        "feature_name": embedding_name.removesuffix(_DEFAULT_ENDING) if _is_default(embedding_name) else None,
        "num_embeddings": num_rows,
        "embedding_dim": num_columns,
        "data_type": DATA_TYPES.get(table.get("data_type", "")),
        "pooling": table.get("pooling"),
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
            for rank, row_offset, rows, column_offset, columns, _ in shards.columns.T.tolist()
        ],
    }


def constraints_text(scheme: Scheme, kernel: Kernel) -> str:
    """Return the field that leaves TorchEasyRec's planner one option, in protobuf's text format.

    The words are ours and the runtime's, letters and underscores, so that nothing in them needs an escape.
    """
    return f'embedding_constraints {{\n  sharding_types: "{scheme.label}"\n  compute_kernels: "{kernel.label}"\n}}\n'


def _embedding_name(name: str, names: set[str]) -> str:
    """Return what features call a table: a group of type WIDE makes ``NAME_wide`` of the features of ``NAME``."""
    narrow = name.removesuffix(_WIDE_ENDING)
    return narrow if narrow != name and (narrow in names or _is_default(narrow)) else name


def _is_default(embedding_name: str) -> bool:
    """Whether a feature of no ``embedding_name`` may have made the name: its own, and an ending."""
    return embedding_name.endswith(_DEFAULT_ENDING) and embedding_name != _DEFAULT_ENDING


def _shared_issues(planned: Sequence[TableDocument], names: set[str]) -> Iterator[str]:
    """Yield why tables cannot be asked for together, whatever each of them is."""
    yield from _wide_issues(planned, names)
    by_module: dict[str, list[TableDocument]] = {}
    for table in planned:
        if table.get("pooling") != "none":  # tables of sequences are in modules of their own
            by_module.setdefault(table.get("module_path", ""), []).append(table)
    for members in by_module.values():
        other = next((table["name"] for table in members if _scheme(table) not in ROW_SCHEMES), None)
        for table in members:
            if other is not None and table.get("pooling") == "mean" and _scheme(table) in ROW_SCHEMES:
                yield (
                    f'Table "{table["name"]}": it is a mean cut by rows beside "{other}", which is not cut so, and'
                    " TorchRec then divides the others once too often."
                )


def _wide_issues(planned: Sequence[TableDocument], names: set[str]) -> Iterator[str]:
    first: dict[str, TableDocument] = {}
    for table in planned:
        other = first.setdefault(_embedding_name(table["name"], names), table)
        if any(other[key] != table[key] for key in ("sharding_type", "compute_kernel")):
            yield (
                f'Table "{table["name"]}": it has the features of "{other["name"]}", whose constraints are its own, and'
                " another sharding type or kernel."
            )


def _check_storage(table: TableDocument) -> None:
    kernel, data_type = table["compute_kernel"], table.get("data_type")
    if data_type not in (None, *DATA_TYPES):
        raise UndictatedTable(f"its weights are {data_type}; they must be {' or '.join(DATA_TYPES)}")
    tiers = {shard["tier"] for shard in table["shards"]}
    tier = _TIER_OF_KERNEL.get(kernel, "hbm")
    if kernel != "key_value" and tiers != {tier}:
        raise UndictatedTable(f"its rows lie in {' and '.join(sorted(tiers))}; {kernel} keeps all of them in {tier}")


def _scheme(table: TableDocument) -> Scheme:
    return Scheme.from_label(table["sharding_type"])
