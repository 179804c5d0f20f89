"""From a plan document to the ``ShardingPlan`` that ``DistributedModelParallel`` takes."""

import os
from collections import defaultdict
from collections.abc import Mapping

import torch.distributed as dist
from torch import nn
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec
from torchrec.distributed.comm import get_local_size, get_topology_group_world_size
from torchrec.distributed.types import CacheParams, EmbeddingModuleShardingPlan, ParameterSharding, ShardingPlan

from ..check import check_plan
from ..documents import ShardDocument, TableDocument
from ..errors import PlanRejected
from .model import LiveTable, live_tables
from .rules import geometry_reasons, pooling_reasons

#: Device types that carry an index per host in a placement (TorchRec ``sharding_plan.placement``).
_INDEXED_DEVICES = frozenset({"cuda", "mtia"})
#: Set in place of hosts by TorchRec's planner where NVLink spans hosts.
POD_VARIABLE = "TORCHREC_RESOLVED_POD_SIZE"


def to_sharding_plan(
    plan: Mapping[str, object],
    *,
    module: nn.Module,
    device: str = "cuda",
    world_size: int | None = None,
    ranks_per_host: int | None = None,
) -> ShardingPlan:
    """Turn a plan into a ``ShardingPlan`` for exactly this model and job, or refuse.

    Parameters
    ----------
    plan
        A plan document of the service.
    module
        The model that is given to ``DistributedModelParallel``, before it; meta device is fine.
        Its tables decide under which module path each one goes.
    device
        ``cuda`` or ``cpu``: where the shards will live.
    world_size, ranks_per_host
        The job's numbers; by default those of the default process group, and what TorchRec
        itself takes from ``LOCAL_WORLD_SIZE``.

    Raises
    ------
    PlanRejected
        The plan differs from the model or the job in tables, rows, columns, data types, pooling,
        module paths, world size or ranks per host, or TorchRec would train it wrongly. Every
        difference is listed; nothing is dropped.
    UnsupportedModel
        The model has embedding modules that a plan cannot describe.
    """
    ranks = dist.get_world_size() if world_size is None else world_size
    local_ranks = get_local_size(ranks) if ranks_per_host is None else ranks_per_host
    document = check_plan(plan, world_size=ranks, ranks_per_host=local_ranks)
    pairs, reasons = _matched(document["tables"], live_tables(module))
    reasons += _group_reasons(ranks, local_ranks)
    for table, live in pairs:
        differences = _differences(table, live) or geometry_reasons(table, live, ranks, local_ranks)
        reasons += [f'table "{live.name}": {difference}' for difference in differences]
    by_path: dict[str, list[tuple[TableDocument, LiveTable]]] = defaultdict(list)
    for table, live in pairs:
        by_path[live.module_path].append((table, live))
    for members in by_path.values():
        reasons += pooling_reasons(members)
    if reasons:
        raise PlanRejected(reasons)
    return assemble(by_path, device=device, ranks_per_host=local_ranks)


def assemble(
    by_path: Mapping[str, list[tuple[TableDocument, LiveTable]]], *, device: str, ranks_per_host: int
) -> ShardingPlan:
    """Build TorchRec's objects from tables that were checked before."""
    return ShardingPlan(
        plan={
            path: EmbeddingModuleShardingPlan(
                {live.name: _parameter_sharding(table, device, ranks_per_host) for table, live in members}
            )
            for path, members in by_path.items()
        }
    )


def _group_reasons(world_size: int, ranks_per_host: int) -> list[str]:
    """Where several hosts are one fast group (a pod), TorchRec cuts host schemes over the whole group."""
    if POD_VARIABLE not in os.environ:
        return []
    group = get_topology_group_world_size(world_size)
    if group == ranks_per_host:
        return []
    return [f"{POD_VARIABLE} makes TorchRec use groups of {group} ranks, the plan has {ranks_per_host} per host"]


def _matched(
    tables: list[TableDocument], live: tuple[LiveTable, ...]
) -> tuple[list[tuple[TableDocument, LiveTable]], list[str]]:
    """Pair the plan's tables with the model's by name, in the model's order."""
    planned = {table["name"]: table for table in tables}
    names = {table.name for table in live}
    reasons = [
        f'table "{t.name}" of module "{t.module_path}" is not in the plan' for t in live if t.name not in planned
    ]
    reasons += [f'table "{name}" of the plan is not in the model' for name in planned if name not in names]
    return [(planned[t.name], t) for t in live if t.name in planned], reasons


def _differences(table: TableDocument, live: LiveTable) -> list[str]:
    """Where the plan's table is not the model's; keys that a plan may leave out are compared where they are."""
    shards = table["shards"]
    pairs = [
        ("rows", max(s["row_offset"] + s["num_rows"] for s in shards), live.num_embeddings),
        ("columns", max(s["column_offset"] + s["num_columns"] for s in shards), live.embedding_dim),
        ("num_embeddings", table.get("num_embeddings", live.num_embeddings), live.num_embeddings),
        ("embedding_dim", table.get("embedding_dim", live.embedding_dim), live.embedding_dim),
        ("data_type", table.get("data_type", live.data_type), live.data_type),
        ("pooling", table.get("pooling", live.pooling), live.pooling),
        ("module_path", table.get("module_path") or live.module_path, live.module_path),
    ]
    return [f"{name} is {mine} in the plan, {theirs} in the model" for name, mine, theirs in pairs if mine != theirs]


def _parameter_sharding(table: TableDocument, device: str, ranks_per_host: int) -> ParameterSharding:
    shards = table["shards"]
    load_factor = table.get("cache_load_factor")
    return ParameterSharding(
        sharding_type=table["sharding_type"],
        compute_kernel=table["compute_kernel"],
        ranks=[shard["rank"] for shard in shards],
        sharding_spec=None
        if table["sharding_type"] == "data_parallel"
        else EnumerableShardingSpec([_shard_metadata(shard, device, ranks_per_host) for shard in shards]),
        cache_params=None if load_factor is None else CacheParams(load_factor=load_factor),
    )


def _shard_metadata(shard: ShardDocument, device: str, ranks_per_host: int) -> ShardMetadata:
    rank = shard["rank"]
    place = f"{device}:{rank % ranks_per_host}" if device in _INDEXED_DEVICES else device
    return ShardMetadata(
        shard_offsets=[shard["row_offset"], shard["column_offset"]],
        shard_sizes=[shard["num_rows"], shard["num_columns"]],
        placement=f"rank:{rank}/{place}",
    )
