"""What users give TorchRec's planner, as a spec says it: constraints, topology, fused parameters."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch.distributed as dist
from torchrec.distributed.comm import get_local_size
from torchrec.distributed.planner.types import ParameterConstraints, Topology
from torchrec.distributed.types import EmbeddingModuleShardingPlan, ShardingPlan

from ..errors import UnsupportedModel
from ..live_table import LiveTable
from .facts import pod_ranks
from .model import OPTIMIZERS

log = logging.getLogger(__name__)

#: A table's name in plans, and one of its features.
FeatureKey = tuple[str, str]
#: What TorchRec counts for a feature without another number.
POOLING_FACTOR = 1.0
#: Settings of a table that are no matter of placement, and go to the runtime as they are.
_OF_THE_RUNTIME = ("enforce_hbm", "stochastic_rounding", "bounds_check_mode", "output_dtype")


def table_constraints(constraints: Mapping[str, ParameterConstraints]) -> dict[str, dict[str, object]]:
    """Return the spec's ``constraints`` objects by table.

    Raises
    ------
    UnsupportedModel
        A constraint is one that a plan cannot keep; every one is listed.
    """
    reasons: list[str] = []
    found = {}
    for name, constraint in constraints.items():
        reasons += [f'constraints of table "{name}": {reason}' for reason in _unsupported_fields(constraint)]
        cache = constraint.cache_params
        values = {
            "sharding_types": list(constraint.sharding_types) if constraint.sharding_types else None,
            "compute_kernels": list(constraint.compute_kernels) if constraint.compute_kernels else None,
            "min_partition": constraint.min_partition,
            "cache_load_factors": None if cache is None or cache.load_factor is None else [cache.load_factor],
        }
        found[name] = {key: value for key, value in values.items() if value is not None}
    if reasons:
        raise UnsupportedModel(reasons)
    return found


def within_limits(
    tables: Sequence[LiveTable],
    constraints: Mapping[str, Mapping[str, object]],
    limits: Mapping[str, Mapping[str, Sequence[str]]],
) -> dict[str, dict[str, object]]:
    """Return the constraints of every table that has some, within what the sharder of its module allows.

    Raises
    ------
    UnsupportedModel
        A table's constraints and its sharder leave nothing.
    """
    reasons: list[str] = []
    found: dict[str, dict[str, object]] = {}
    for table in tables:
        asked = dict(constraints.get(table.name_in_module, {}))
        for field, allowed in limits.get(table.module_path, {}).items():
            stated: Any = asked.get(field)
            asked[field] = [one for one in allowed if stated is None or one in stated]
            if not asked[field]:
                reasons.append(f'table "{table.name}": the sharder has no {field} but {", ".join(allowed)}')
        if asked:
            found[table.name] = asked
    missing = constraints.keys() - {table.name_in_module for table in tables}
    reasons += [f'constraints: no table is named "{name}"' for name in sorted(missing)]
    if reasons:
        raise UnsupportedModel(reasons)
    return found


def _unsupported_fields(constraint: ParameterConstraints) -> Iterable[str]:
    if constraint.use_virtual_table:
        yield "a virtual table has no rows to place"
    if constraint.key_value_params is not None:
        yield "key_value_params are not carried by a plan"
    if constraint.device_group not in (None, "cuda"):
        yield f"device_group {constraint.device_group} is not planned"


def feature_numbers(
    tables: Iterable[LiveTable], constraints: Mapping[str, ParameterConstraints], batch_size: int
) -> tuple[dict[FeatureKey, float], dict[FeatureKey, float]]:
    """Return ids per pooling, and poolings per sample, by table and feature, as TorchRec counts them.

    A feature of another batch size than ``batch_size`` has as many poolings more or fewer: TorchRec's estimator takes
    the product of the two alone. Features without pooling factors have one id per sample there, and so they have here,
    with a warning: no other number decides as much.

    Raises
    ------
    UnsupportedModel
        A list has another length than the table has features.
    """
    factors: dict[FeatureKey, float] = {}
    poolings: dict[FeatureKey, float] = {}
    reasons: list[str] = []
    unknown: list[str] = []
    for table in tables:
        constraint = constraints.get(table.name_in_module) or ParameterConstraints()
        stated = list(constraint.pooling_factors)
        if stated == [POOLING_FACTOR]:
            unknown += table.feature_names
        given = {
            "pooling_factors": stated,
            "num_poolings": list(constraint.num_poolings or [1.0]),
            "batch_sizes": list(constraint.batch_sizes or [batch_size]),
        }
        wrong = [
            f'{what} of table "{table.name}": {len(numbers)} for {len(table.feature_names)} features'
            for what, numbers in given.items()
            if len(numbers) not in (1, len(table.feature_names))
        ]
        reasons += wrong
        for number, feature in enumerate(() if wrong else table.feature_names):
            factor, pooling, batch = (numbers[number % len(numbers)] for numbers in given.values())
            factors[table.name, feature] = float(factor)
            poolings[table.name, feature] = pooling * batch / batch_size
    if reasons:
        raise UnsupportedModel(reasons)
    if unknown:
        shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        log.warning(
            "%d features have no pooling_factors, and count as one id per sample, as in TorchRec: %s; no other number"
            " decides as much",
            len(unknown),
            shown,
        )
    return factors, poolings


def hardware_object(hardware: str | Mapping[str, object], topology: Topology | None) -> dict[str, object]:
    """Return the spec's ``hardware`` object: a profile with the job's ranks and pods, and the memory of a topology."""
    if not isinstance(hardware, str):
        return dict(hardware)
    if topology is None:
        world_size = dist.get_world_size()
        ranks_per_host = get_local_size(world_size)
        pod_size = pod_ranks(world_size)
        overrides: dict[str, object] = {}
    else:
        world_size, ranks_per_host = topology.world_size, topology.local_world_size
        pod_size = topology.intra_group_size if topology.intra_group_size != ranks_per_host else None
        overrides = _memory(topology)
    if world_size % ranks_per_host:
        raise UnsupportedModel(
            [
                f"{world_size} ranks are no multiple of {ranks_per_host} per host, and plans are for hosts of one size;"
                " start as many ranks on every host, or state another local_world_size"
            ]
        )
    return {
        "profile": hardware,
        "num_hosts": world_size // ranks_per_host,
        "ranks_per_host": ranks_per_host,
        **({} if pod_size is None else {"pod_size": pod_size}),
        **({"overrides": overrides} if overrides else {}),
    }


def _memory(topology: Topology) -> dict[str, object]:
    """Bytes of each rank, as the topology has them: without accelerators, none of theirs, whatever the profile has."""
    storages = [device.storage for device in topology.devices]
    found: dict[str, object] = {"ddr_bytes": min(storage.ddr for storage in storages)}
    hbm = [storage.hbm for storage in storages]
    found["hbm_bytes"] = max(hbm)
    if len(set(hbm)) > 1:
        found["hbm_bytes_by_rank"] = hbm
    return found


def fused_optimizer(sharders: Iterable[Any]) -> str | None:
    """Return the optimizer that the sharders' ``fused_params`` name, if they do.

    Raises
    ------
    UnsupportedModel
        They name several, or one that cannot be planned.
    """
    kinds = {
        params["optimizer"]
        for params in (getattr(sharder, "fused_params", None) or {} for sharder in sharders)
        if "optimizer" in params
    }
    names = {OPTIMIZERS.get(kind.name) for kind in kinds}
    if None in names or len(names) > 1:
        kind_names = ", ".join(sorted(kind.name for kind in kinds))
        raise UnsupportedModel(
            [f"fused_params name the optimizer {kind_names}; give one of {', '.join(OPTIMIZERS.values())}"]
        )
    return names.pop() if names else None


def with_runtime_settings(plan: ShardingPlan, constraints: Mapping[str, ParameterConstraints]) -> ShardingPlan:
    """Put what is no matter of placement into a plan, as TorchRec's planner does, and return it."""
    for module in plan.plan.values():
        if not isinstance(module, EmbeddingModuleShardingPlan):
            raise AssertionError("Expected embedding modules alone in a plan of ours.")
        for name, sharding in module.items():
            constraint = constraints.get(name)
            for key in _OF_THE_RUNTIME if constraint is not None else ():
                setattr(sharding, key, getattr(constraint, key))
            if constraint is not None and constraint.cache_params is not None and sharding.cache_params is not None:
                # The plan decides how much is cached and which tables share a cache, the user how, and what stays free.
                ours, theirs = sharding.cache_params, constraint.cache_params
                free = [one.reserved_memory for one in (ours, theirs) if one.reserved_memory is not None]
                reserved = sum(free) if free else None
                sharding.cache_params = replace(theirs, load_factor=ours.load_factor, reserved_memory=reserved)
    return plan
