"""What users told TorchRec's planner, said as a spec says it: constraints, topology, fused parameters."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch.distributed as dist
from torchrec.distributed.comm import get_local_size
from torchrec.distributed.planner.types import ParameterConstraints, Topology
from torchrec.distributed.types import EmbeddingModuleShardingPlan, ShardingPlan

from ..errors import UnsupportedModel
from ..live_table import LiveTable
from .model import OPTIMIZERS

log = logging.getLogger(__name__)

#: What TorchRec counts for a feature of which nobody says more.
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


def _unsupported_fields(constraint: ParameterConstraints) -> Iterable[str]:
    if constraint.batch_sizes:
        yield "batch_sizes of single features are not planned; give num_poolings"
    if constraint.use_virtual_table:
        yield "a virtual table has no rows to place"
    if constraint.key_value_params is not None:
        yield "key_value_params are not carried by a plan"
    if constraint.device_group not in (None, "cuda"):
        yield f"device_group {constraint.device_group} is not planned"


def feature_numbers(
    tables: Iterable[LiveTable], constraints: Mapping[str, ParameterConstraints]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return ids per sample and poolings per sample by feature, as TorchRec counts them.

    Features of which nobody says more have one id per sample there, and so they have here, with a warning: no other
    number decides as much.

    Raises
    ------
    UnsupportedModel
        A list has another length than the table has features, or two tables count one feature differently.
    """
    factors: dict[str, float] = {}
    poolings: dict[str, float] = {}
    reasons: list[str] = []
    unknown: list[str] = []
    for table in tables:
        constraint = constraints.get(table.name)
        numbers = (
            []
            if constraint is None or list(constraint.pooling_factors) == [POOLING_FACTOR]
            else constraint.pooling_factors
        )
        if not numbers:
            unknown += table.feature_names
        reasons += _note("pooling_factors", table, numbers or [POOLING_FACTOR], factors)
        reasons += _note("num_poolings", table, (constraint and constraint.num_poolings) or [1.0], poolings)
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
    return factors, {feature: value for feature, value in poolings.items() if value != 1.0}


def _note(what: str, table: LiveTable, given: Sequence[float], found: dict[str, float]) -> Iterator[str]:
    """Note the numbers of a table's features, one for all or one for each; yield what is wrong with them."""
    features = table.feature_names
    if len(given) not in (1, len(features)):
        yield f'{what} of table "{table.name}": {len(given)} for {len(features)} features'
        return
    values = list(given) * len(features) if len(given) == 1 else given
    for feature, value in zip(features, values, strict=True):
        if found.setdefault(feature, float(value)) != value:
            yield f'{what}: feature "{feature}" has {found[feature]:g} in one table, {value:g} in another'


def hardware_object(hardware: str | Mapping[str, object], topology: Topology | None) -> dict[str, object]:
    """Return the spec's ``hardware`` object: a profile with the job's ranks, and the memory that a topology states."""
    if not isinstance(hardware, str):
        return dict(hardware)
    if topology is None:
        world_size = dist.get_world_size()
        ranks_per_host = get_local_size(world_size)
        overrides: dict[str, object] = {}
    else:
        world_size, ranks_per_host = topology.world_size, topology.local_world_size
        overrides = _memory(topology)
    return {
        "profile": hardware,
        "num_hosts": world_size // ranks_per_host,
        "ranks_per_host": ranks_per_host,
        **({"overrides": overrides} if overrides else {}),
    }


def _memory(topology: Topology) -> dict[str, object]:
    """Bytes of each rank, as the topology has them; a host without accelerators states none of theirs."""
    storages = [device.storage for device in topology.devices]
    found: dict[str, object] = {"ddr_bytes": min(storage.ddr for storage in storages)}
    hbm = [storage.hbm for storage in storages]
    if any(hbm):
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
