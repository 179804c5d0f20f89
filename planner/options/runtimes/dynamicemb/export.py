"""A plan as dynamicemb's planner is asked for it: constraints of every table, and the options of hash tables.

``DynamicEmbeddingShardingPlanner`` makes a plan of its own from constraints. All tables that a plan for it can have are
on all ranks, so that sharding type, kernel and share of the device's memory leave it one plan, the one that was
exported. The options of a hash table need its optimizer, its buckets and its eviction, which stand in the spec that the
plan was made for.

The memory that a hash table asks for on the device is ``global_hbm_for_values``, of which every rank gets an equal
part: all of its values, or its share of them, rounded up so that dynamicemb's own rounding gives as many slots as
planned.
"""

import math

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.hash_table import NO_EVICTION
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.runtimes.dynamicemb.operators import bucket_size_of
from planner.options.runtimes.dynamicemb.rules import SCHEMES
from planner.options.runtimes.export import PlanToExport, UnexportablePlan, read_tables, require_gpus
from planner.options.runtimes.geometry import UnheldGeometry, check_copies, check_row_blocks, extent, ranks_once

#: ``DynamicEmbScoreStrategy`` by our evictions, in the order in which dynamicemb stores scores.
SCORE_STRATEGIES = {
    NO_EVICTION: ["NO_EVICTION"],
    "timestamp": ["TIMESTAMP"],
    "step": ["STEP"],
    "customized": ["CUSTOMIZED"],
    "lfu": ["LFU"],
    "timestamp_lfu": ["TIMESTAMP", "LFU"],
}
#: State of an optimizer in numbers of the weights' type per weight, and in bytes per row (``get_optimizer_state_dim``).
_STATE = {"none": (0, 0), "sgd": (0, 0), "adagrad": (1, 0), "adam": (2, 0), "rowwise_adagrad": (0, 16)}
_KERNELS = (Kernel.DENSE, Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING)


def to_dynamicemb(plan: PlanToExport) -> dict[str, object]:
    """Write a plan for dynamicemb: ``constraints`` are fields of ``DynamicEmbParameterConstraints``."""
    require_gpus(plan, "dynamicemb keeps the keys of its tables on GPUs")
    placement, problem = plan.placement, plan.facts.problem
    found = read_tables(plan, lambda placed, ranks: _table(placed, problem, ranks), "dynamicemb cannot run this plan")
    return {
        "world_size": placement.world_size,
        "local_world_size": placement.ranks_per_host,
        "device": plan.device,
        "tables": [table for _, table in found],
    }


def _table(placed: TablePlacement, problem: Problem | None, num_ranks: int) -> dict[str, object]:
    num_rows, num_columns = extent(placed)
    scheme, kernel = placed.sharding_type, placed.compute_kernel
    if scheme not in SCHEMES:
        raise UnheldGeometry(f"it is {scheme.label}, which dynamicemb neither saves nor loads")
    table = _known(placed, problem)
    if kernel.facts.is_hashed:
        _check_hash_table(placed, table, num_ranks)
    elif kernel not in _KERNELS or (kernel is Kernel.DENSE) != (scheme is Scheme.DATA_PARALLEL):
        raise UnheldGeometry(f"it is {scheme.label} with {kernel.label}, which its planner does not offer")
    if scheme is Scheme.DATA_PARALLEL:
        check_copies(placed.shards, num_rows, num_columns, num_ranks, "rank")
    else:
        _check_rows(placed, num_rows, num_columns, num_ranks)
    constraints = _hash_constraints(placed, table, num_ranks) if kernel.facts.is_hashed else _constraints(placed)
    slots = _slots(table, num_ranks) if table is not None and kernel.facts.is_hashed else None
    return {
        "name": placed.name,
        "module_path": placed.module_path,
        "num_embeddings": num_rows,
        "embedding_dim": num_columns,
        "data_type": placed.data_type or None,
        "pooling": placed.pooling or None,
        "sharding_type": scheme.label,
        "compute_kernel": kernel.label,
        "slots_per_rank": slots,
        "constraints": constraints,
    }


def _known(placed: TablePlacement, problem: Problem | None) -> Table | None:
    """Return the table of the spec; hash tables need it."""
    if problem is None:
        if placed.compute_kernel.facts.is_hashed:
            raise UnexportablePlan(
                f'The options of the hash table "{placed.name}" stand in the spec of the plan: buckets, eviction and'
                " optimizer. Give the spec (--spec on the command line; the service looks it up)."
            )
        return None
    table = next((one for one in problem.tables if one.name == placed.name), None)
    if table is None:
        raise UnheldGeometry("the spec has no such table")
    return table


def _check_hash_table(placed: TablePlacement, table: Table | None, num_ranks: int) -> None:
    if table is None or table.hash_table is None or table.hash_table.eviction not in SCORE_STRATEGIES:
        raise UnheldGeometry("the spec has no hash_table of the mode dynamicemb for it")
    if placed.sharding_type is not Scheme.ROW_WISE:
        raise UnheldGeometry(f"it is {placed.sharding_type.label}; hash tables are row_wise")
    tiers = {Tier(tier).label for tier in placed.shards.tier.tolist()}
    if tiers != {placed.compute_kernel.tier(Tier.HBM).label}:
        raise UnheldGeometry(
            f"its rows lie in {' and '.join(sorted(tiers))}, where {placed.compute_kernel.label} has none"
        )


def _check_rows(placed: TablePlacement, num_rows: int, num_columns: int, num_ranks: int) -> None:
    shards = placed.shards
    if ranks_once(shards, "rank") != list(range(num_ranks)):
        raise UnheldGeometry("it is not on all ranks")
    if any(shards.num_columns != num_columns):
        raise UnheldGeometry("it is cut by columns")
    check_row_blocks(shards.row_offset, shards.num_rows, num_rows, num_ranks, how="dealt out evenly", each="rank")


def _constraints(placed: TablePlacement) -> dict[str, object]:
    """Return what leaves its planner one option for a table of TorchRec's."""
    share, reserved = placed.cache_load_factor, placed.cache_reserved_bytes
    cache = None if share is None else {"load_factor": share, "reserved_memory": reserved}
    return {
        "use_dynamicemb": False,
        "sharding_types": [placed.sharding_type.label],
        "compute_kernels": [placed.compute_kernel.label],
        "bounds_check_mode": None,
        "cache_params": cache,
        "dynamicemb_options": None,
    }


def _hash_constraints(placed: TablePlacement, table: Table | None, num_ranks: int) -> dict[str, object]:
    assert table is not None
    data_type = placed.data_type or table.data_type.name
    return {
        "use_dynamicemb": True,
        "sharding_types": [Scheme.ROW_WISE.label],
        "compute_kernels": None,
        "bounds_check_mode": "NONE",
        "cache_params": None,
        "dynamicemb_options": options_of(table, placed.compute_kernel, placed.cache_load_factor, data_type, num_ranks),
    }


def options_of(table: Table, kernel: Kernel, share: float | None, data_type: str, num_ranks: int) -> dict[str, object]:
    """Return the fields of ``DynamicEmbTableOptions`` that a plan decides, and those that the spec states."""
    hash_table = table.hash_table
    assert hash_table is not None
    return {
        "training": table.optimizer.name != "none",
        "caching": kernel is Kernel.HASH_CACHING,
        "bucket_capacity": bucket_size_of(table),
        "init_capacity": hash_table.initial_capacity_per_rank,
        "global_hbm_for_values": num_ranks * _local_bytes(table, kernel, share, data_type, num_ranks),
        "score_strategy": SCORE_STRATEGIES[hash_table.eviction],
        "dist_type": "roundrobin",
    }


def _slots(table: Table, num_ranks: int) -> int:
    """Return the slots of a rank, whole buckets (``_sharded_table_bucket_layout``)."""
    size, of_rank = bucket_size_of(table), -(-table.num_embeddings // num_ranks)
    return -(-of_rank // size) * size


def _local_bytes(table: Table, kernel: Kernel, share: float | None, data_type: str, num_ranks: int) -> int:
    """Return the bytes of values that a rank has on its device."""
    if kernel is Kernel.HASH_HOST:
        return 0
    per_weight, per_row = _STATE[table.optimizer.name]
    value = int(table.embedding_dim * DATA_TYPES[data_type].element_bytes * (1 + per_weight)) + per_row
    return math.ceil(_slots(table, num_ranks) * value * (1.0 if share is None else share))
