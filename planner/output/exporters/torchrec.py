"""A plan as TorchRec writes its own: module path, table, sharding type, kernel, ranks, shards.

The inner ``plan`` object equals what ``torchrec.distributed.types.ShardingPlan._serialize``
(TorchRec 1.8.0) returns for the same plan, plus ``cache_params`` of cached tables, which it
leaves out. Around it stands what a launcher must compare before use: world sizes, the tables,
the digests.
"""

from planner.domain.formats.canonical_json import digest
from planner.options.runtimes.torchrec.rules import SCHEMES
from planner.output.exporters.context import UnexportablePlan, checked_digest
from planner.output.plan_document import PlanDocument, TableDocument

FORMAT_VERSION = 1
#: The oldest TorchRec whose metadata rules this export follows.
TORCHREC_MIN_VERSION = "1.8.0"
#: Device types that carry an index per host in a placement.
INDEXED_DEVICES = frozenset({"cuda", "mtia"})
DEVICES = ("cuda", "cpu", "mtia")
_SHARDING_TYPES = frozenset(scheme.label for scheme in SCHEMES)


def to_torchrec(document: PlanDocument, *, module_path: str | None = None, device: str = "cuda") -> dict[str, object]:
    """Write a plan document in TorchRec's form.

    Parameters
    ----------
    document
        The plan document of the contract.
    module_path
        Path of the ``EmbeddingBagCollection`` in the model given to ``DistributedModelParallel``
        (``""`` where it is the model itself), for tables that carry none. TorchRec ignores a
        plan under a wrong path without an error, so there is no default.
    device
        ``cuda``, ``cpu`` or ``mtia``.

    Returns
    -------
    dict
        ``plan`` as TorchRec serialises it, with ``world_size``, ``local_world_size``, ``tables``,
        ``plan_digest``, ``torchrec_min_version``, and ``content_sha256``: the SHA-256 of the
        canonical bytes of all other keys.

    Raises
    ------
    UnexportablePlan
        The module path of a table is not known, contradicts ``module_path``, or the document
        is not the one that its digest names.
    """
    if device not in DEVICES:
        raise UnexportablePlan(f"Expected device to be one of {', '.join(DEVICES)}.")
    content_digest = checked_digest(document)
    ranks_per_host = document["ranks_per_host"]
    modules: dict[str, dict[str, object]] = {}
    tables: list[dict[str, object]] = []
    for table in document["tables"]:
        path, shards = _module_path(table, module_path), table["shards"]
        modules.setdefault(path, {})[table["name"]] = _parameter_sharding(table, device, ranks_per_host)
        tables.append(
            {
                "name": table["name"],
                "module_path": path,
                "num_embeddings": max(s["row_offset"] + s["num_rows"] for s in shards),
                "embedding_dim": max(s["column_offset"] + s["num_columns"] for s in shards),
            }
        )
    export: dict[str, object] = {
        "format": "torchrec",
        "format_version": FORMAT_VERSION,
        "torchrec_min_version": TORCHREC_MIN_VERSION,
        "plan_digest": content_digest,
        "world_size": document["world_size"],
        "local_world_size": ranks_per_host,
        "device": device,
        "tables": tables,
        "plan": modules,
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


def _module_path(table: TableDocument, given: str | None) -> str:
    own = table.get("module_path") or None
    path = given if own is None else own
    if path is None:
        raise UnexportablePlan(
            f'Table "{table["name"]}" carries no module_path; name the path of its EmbeddingBagCollection'
            " in the model (module_path), or give module_path for the table in the spec."
        )
    if own is not None and given is not None and own != given:
        raise UnexportablePlan(f'Table "{table["name"]}" is under module_path "{own}" in the plan, not "{given}".')
    return path


def _parameter_sharding(table: TableDocument, device: str, ranks_per_host: int) -> dict[str, object]:
    shards = table["shards"]
    if table["sharding_type"] not in _SHARDING_TYPES:
        raise UnexportablePlan(f'Table "{table["name"]}" is {table["sharding_type"]}, which TorchRec does not have.')
    tiers = {shard["tier"] for shard in shards}
    if "scm" in tiers:
        raise UnexportablePlan(f'Table "{table["name"]}" lies in scm, where TorchRec puts no rows.')
    if len(tiers) > 1:
        raise UnexportablePlan(f'Table "{table["name"]}" is split by heat between tiers, which TorchRec does not run.')
    sharding: dict[str, object] = {
        "sharding_type": table["sharding_type"],
        "compute_kernel": table["compute_kernel"],
        "ranks": [shard["rank"] for shard in shards],
    }
    if table["sharding_type"] != "data_parallel":  # TorchRec replicates such a table itself: no shards
        sharding["shards"] = [
            {
                "shard_offsets": [shard["row_offset"], shard["column_offset"]],
                "shard_sizes": [shard["num_rows"], shard["num_columns"]],
                "placement": f"rank:{shard['rank']}/{_device_name(device, shard['rank'], ranks_per_host)}",
            }
            for shard in shards
        ]
    load_factor = table.get("cache_load_factor")
    if load_factor is not None:
        sharding["cache_params"] = {"load_factor": load_factor}
    return sharding


def _device_name(device: str, rank: int, ranks_per_host: int) -> str:
    return f"{device}:{rank % ranks_per_host}" if device in INDEXED_DEVICES else device
