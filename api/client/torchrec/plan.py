"""From a plan document to the ``ShardingPlan`` that ``DistributedModelParallel`` takes."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import cast

import torch.distributed as dist
from torch import nn
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec
from torchrec.distributed.comm import get_local_size
from torchrec.distributed.types import (
    CacheParams,
    EmbeddingModuleShardingPlan,
    KeyValueParams,
    ParameterSharding,
    ShardingPlan,
)

from ..check import shape_differences
from ..documents import in_long_form, plan_digest
from ..errors import PlanRejected
from ..job import pod_differences
from ..live_table import LiveTable
from ..model_check import Pair, pairs_by_path, plan_differences
from ..plan_types import PlanDocument, ShardDocument, TableDocument
from ..replica_groups import groups_of
from ..verdicts import verdict_of
from .facts import pod_ranks
from .model import live_tables

#: Device types that carry an index per host in a placement (TorchRec ``sharding_plan.placement``).
_INDEXED_DEVICES = frozenset({"cuda", "mtia"})
_SLOTS_PER_SET = 32  # FBGEMM ``ASSOC``
_ELEMENT_BYTES = {"fp32": 4, "fp16": 2}  # types of weights that FBGEMM keeps on SSD


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
        A plan document of the service, in either form.
    module
        The model that is given to ``DistributedModelParallel``, before it; meta device is fine.
        Its tables decide under which module path each one goes.
    device
        ``cuda`` or ``cpu``: where the shards will live.
    world_size, ranks_per_host
        The job's numbers, of a plan with sharding groups those of a group; by default those of the
        default process group, and what TorchRec itself takes from ``LOCAL_WORLD_SIZE``. A plan with
        sharding groups has its own: :func:`handshake` compares them with the job.

    Raises
    ------
    PlanRejected
        The plan differs from the model or the job in tables, rows, columns, data types, pooling,
        module paths, world size or ranks per host, or TorchRec would train it wrongly. Every
        difference is listed; nothing is dropped.
    UnsupportedModel
        The model has embedding modules that a plan cannot describe.
    """
    tables = live_tables(module)
    plan = in_long_form(plan)
    document = cast("PlanDocument", plan)
    groups = groups_of(document)
    if world_size is None:
        world_size = dist.get_world_size() if groups is None else groups["sharding_group_size"]
    if ranks_per_host is None:
        ranks_per_host = get_local_size(world_size) if groups is None else document["ranks_per_host"]
    ranks, local_ranks = world_size, ranks_per_host
    found = shape_differences(plan) or [
        *plan_differences(
            document, tables, digest=plan_digest(plan), world_size=ranks, ranks_per_host=local_ranks, device=device
        ),
        *pod_differences(
            document, local_ranks, pod_ranks(ranks), uses_2d=groups is not None and groups["num_groups"] > 1
        ),
    ]
    if found:
        raise PlanRejected([difference.text for difference in found], verdict_of(found))
    return assemble(pairs_by_path(document, tables), device=device, ranks_per_host=local_ranks)


def assemble(by_path: Mapping[str, Sequence[Pair]], *, device: str, ranks_per_host: int) -> ShardingPlan:
    """Build TorchRec's objects from tables that were checked before."""
    return ShardingPlan(
        plan={
            path: EmbeddingModuleShardingPlan(
                {
                    live.name_in_module: _parameter_sharding(table, live, device, ranks_per_host)
                    for table, live in members
                }
            )
            for path, members in by_path.items()
        }
    )


def _parameter_sharding(table: TableDocument, live: LiveTable, device: str, ranks_per_host: int) -> ParameterSharding:
    shards = table["shards"]
    load_factor = table.get("cache_load_factor")
    return ParameterSharding(
        sharding_type=table["sharding_type"],
        compute_kernel=table["compute_kernel"],
        ranks=[shard["rank"] for shard in shards],
        sharding_spec=None
        if table["sharding_type"] == "data_parallel"
        else EnumerableShardingSpec([_shard_metadata(shard, device, ranks_per_host) for shard in shards]),
        cache_params=None
        if load_factor is None
        else CacheParams(load_factor=load_factor, reserved_memory=table.get("cache_reserved_bytes")),
        key_value_params=_key_value_params(table, live, load_factor),
    )


def _key_value_params(table: TableDocument, live: LiveTable, load_factor: float | None) -> KeyValueParams | None:
    """Return what gives a ``key_value`` table the plan's cache, and leaves all else to the sharder's ``fused_params``.

    TorchRec 1.8.0 gives such a table a fifth of its rows whatever its load factor (``_populate_ssd_tbe_params``), and
    cuts that down to ``max_l1_cache_size`` MiB, in whole sets of slots.
    """
    if load_factor is None or table["compute_kernel"] != "key_value":
        return None
    shard = table["shards"][0]  # of row blocks, a full one
    slot_bytes = shard["num_columns"] * _ELEMENT_BYTES[live.data_type]
    sets = max(1, int(load_factor * shard["num_rows"] / _SLOTS_PER_SET))
    others = {field.name: None for field in fields(KeyValueParams)}
    cache = {"max_l1_cache_size": (sets + 0.5) * _SLOTS_PER_SET * slot_bytes / 2**20}
    return KeyValueParams(**{**others, **cache})


def _shard_metadata(shard: ShardDocument, device: str, ranks_per_host: int) -> ShardMetadata:
    rank = shard["rank"]
    place = f"{device}:{rank % ranks_per_host}" if device in _INDEXED_DEVICES else device
    return ShardMetadata(
        shard_offsets=[shard["row_offset"], shard["column_offset"]],
        shard_sizes=[shard["num_rows"], shard["num_columns"]],
        placement=f"rank:{rank}/{place}",
    )
