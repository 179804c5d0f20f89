"""Plans of this planner, all the way: a live model, its spec, the planner, the document."""

import json
from collections.abc import Mapping, Sequence

from api.client.torchrec import spec_from_model
from api.specs.parse import parse_spec
from planner.pipeline import plan
from tests.support.planning.long_plans import to_document
from tests.support.torchrec.model import MAX_IDS_PER_BAG, TableSpec
from tests.support.torchrec.ranks import Model


def forced_plan(
    tables: Sequence[TableSpec],
    world_size: int,
    ranks_per_host: int,
    pod_size: int | None = None,
    optimizer: str = "rowwise_adagrad",
    use_index_dedup: str = "off",
) -> dict[str, object]:
    """Plan the tables, each held to its scheme and kernel; the planner chooses cuts and ranks."""
    constraints = {
        t.name: {"sharding_types": [t.scheme], "compute_kernels": [t.kernel], "min_partition": 4} for t in tables
    }
    return _plan(tables, world_size, ranks_per_host, pod_size, constraints, optimizer, use_index_dedup)


def free_plan(
    tables: Sequence[TableSpec], world_size: int, ranks_per_host: int, pod_size: int | None = None
) -> dict[str, object]:
    """Plan the tables with nothing said about them."""
    return _plan(tables, world_size, ranks_per_host, pod_size, {})


def grouped_plan(
    tables: Sequence[TableSpec],
    world_size: int,
    ranks_per_host: int,
    groups: Mapping[str, object],
    pod_size: int | None = None,
    optimizer: str = "rowwise_adagrad",
) -> dict[str, object]:
    """Plan the tables for sharding groups, each held to its scheme and kernel."""
    constraints = {
        t.name: {"sharding_types": [t.scheme], "compute_kernels": [t.kernel], "min_partition": 4} for t in tables
    }
    return _plan(tables, world_size, ranks_per_host, pod_size, constraints, optimizer, replica_groups=groups)


def _plan(
    tables: Sequence[TableSpec],
    world_size: int,
    ranks_per_host: int,
    pod_size: int | None,
    constraints: Mapping[str, Mapping[str, object]],
    optimizer: str = "rowwise_adagrad",
    use_index_dedup: str = "off",
    **hardware: object,
) -> dict[str, object]:
    spec = spec_from_model(
        Model(list(tables)),
        batch_size_per_rank=8,
        hardware={
            "profile": "dgx-h100-80g",
            "num_hosts": world_size // ranks_per_host,
            "ranks_per_host": ranks_per_host,
            "pod_size": pod_size,
            **hardware,
        },
        default_pooling_factor=MAX_IDS_PER_BAG / 2,
        optimizer=optimizer,
        name="trained",
        constraints=constraints,
    )
    spec = {**spec, "model": {**spec["model"], "use_index_dedup": use_index_dedup}}
    request = parse_spec(json.dumps({**spec, "solver": {"partitioner": "greedy"}}).encode())
    result = plan(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    if result.plan is None:
        raise AssertionError(f"no plan: {result.reason}: {result.shortfalls}")
    return to_document(
        result.plan,
        name=request.name,
        spec_digest=request.spec_digest,
        hardware_profile=request.hardware_profile,
    )
