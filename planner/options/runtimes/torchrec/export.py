"""A plan as TorchRec writes its own: module path, table, sharding type, kernel, ranks, shards.

The inner ``plan`` object equals what ``torchrec.distributed.types.ShardingPlan._serialize``
(TorchRec 1.8.0) returns for the same plan, plus ``cache_params`` of cached tables, which it
leaves out. Around it stands what a launcher must compare before use: world sizes, the tables,
the digests. A plan for pods of hosts has ``intra_group_size`` there, TorchRec's word for the ranks
of a pod (``Topology``); ``TORCHREC_RESOLVED_POD_SIZE`` counts a pod's hosts. A plan that
deduplicates ids states what ``EmbeddingCollectionSharder`` gets (``embedding_collection_sharder``), since TorchRec's
plans have no place for it.
"""

from collections.abc import Mapping

from cost_models.vocabulary import Tier
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.table_names import name_in_module
from planner.options.runtimes.export import PlanToExport, UnexportablePlan
from planner.options.runtimes.geometry import extent
from planner.options.runtimes.torchrec.rules import SCHEMES

#: The oldest TorchRec whose metadata rules this export follows.
TORCHREC_MIN_VERSION = "1.8.0"
#: Device types that carry an index per host in a placement.
INDEXED_DEVICES = frozenset({"cuda", "mtia"})
DEVICES = ("cuda", "cpu", "mtia")


def to_torchrec(plan: PlanToExport) -> dict[str, object]:
    """Write a plan for TorchRec: ``plan`` is as TorchRec serialises it.

    TorchRec ignores a plan under a wrong path without an error, so that the path of the ``EmbeddingBagCollection`` in
    the model given to ``DistributedModelParallel`` (``""`` where it is the model itself) has no default.
    """
    if plan.device not in DEVICES:
        raise UnexportablePlan(f"Expected device to be one of {', '.join(DEVICES)}.")
    ranks_per_host = plan.placement.ranks_per_host
    modules: dict[str, dict[str, object]] = {}
    tables: list[dict[str, object]] = []
    for placed in plan.placement.tables:
        path, (num_rows, num_columns) = _module_path(placed, plan.module_path), extent(placed)
        name = name_in_module(path, placed.name)
        modules.setdefault(path, {})[name] = _parameter_sharding(placed, plan.device, ranks_per_host)
        facts = {"name": name, "module_path": path, "num_embeddings": num_rows, "embedding_dim": num_columns}
        # TorchRec has no place for it in a plan: the launcher sets it in the table's config.
        tables.append({**facts, "stash_weights": True} if placed.stash_weights else facts)
    return {
        "torchrec_min_version": TORCHREC_MIN_VERSION,
        "world_size": plan.placement.world_size,
        "local_world_size": ranks_per_host,
        **({} if plan.placement.pod_size is None else {"intra_group_size": plan.placement.pod_size}),
        **({"embedding_collection_sharder": {"use_index_dedup": True}} if plan.placement.use_index_dedup else {}),
        **({} if plan.replica_groups is None else {"dmp_collection": _dmp_collection(plan.replica_groups)}),
        "device": plan.device,
        "tables": tables,
        "plan": modules,
    }


def _dmp_collection(groups: Mapping[str, object]) -> dict[str, object]:
    """Return what ``DMPCollection`` gets, and how often the launcher calls its ``sync`` with what."""
    names = ("world_size", "sharding_group_size", "node_group_size", "use_inter_host_allreduce")
    sync = {
        "interval_steps": groups["sync_interval_steps"],
        "include_optimizer_state": groups["include_optimizer_state"],
    }
    return {**{name: groups[name] for name in names}, "sync": sync}


def _module_path(placed: TablePlacement, given: str | None) -> str:
    own = placed.module_path or None
    path = given if own is None else own
    if path is None:
        raise UnexportablePlan(
            f'Table "{placed.name}" carries no module_path; name the path of its EmbeddingBagCollection in the model'
            " (--module-path on the command line, module_path over HTTP), or give the table's module_path in the spec."
        )
    if own is not None and given is not None and own != given:
        raise UnexportablePlan(f'Table "{placed.name}" is under module_path "{own}" in the plan, not "{given}".')
    return path


def _parameter_sharding(placed: TablePlacement, device: str, ranks_per_host: int) -> dict[str, object]:
    shards = placed.shards
    if placed.sharding_type not in SCHEMES:
        raise UnexportablePlan(f'Table "{placed.name}" is {placed.sharding_type.label}, which TorchRec does not have.')
    tiers = set(shards.tier.tolist())
    if Tier.SCM in tiers:
        raise UnexportablePlan(f'Table "{placed.name}" lies in scm, where TorchRec puts no rows.')
    if len(tiers) > 1:
        raise UnexportablePlan(f'Table "{placed.name}" is split by heat between tiers, which TorchRec does not run.')
    sharding: dict[str, object] = {
        "sharding_type": placed.sharding_type.label,
        "compute_kernel": placed.compute_kernel.label,
        "ranks": shards.rank.tolist(),
    }
    if not placed.sharding_type.is_replicated:  # TorchRec replicates such a table itself: no shards
        sharding["shards"] = [
            {
                "shard_offsets": [row_offset, column_offset],
                "shard_sizes": [num_rows, num_columns],
                "placement": f"rank:{rank}/{_device_name(device, rank, ranks_per_host)}",
            }
            for rank, row_offset, num_rows, column_offset, num_columns, _ in shards.columns.T.tolist()
        ]
    if placed.cache_load_factor is not None:
        reserved = placed.cache_reserved_bytes
        sharding["cache_params"] = {
            "load_factor": placed.cache_load_factor,
            **({} if reserved is None else {"reserved_memory": reserved}),
        }
    return sharding


def _device_name(device: str, rank: int, ranks_per_host: int) -> str:
    return f"{device}:{rank % ranks_per_host}" if device in INDEXED_DEVICES else device
