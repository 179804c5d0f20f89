"""From options to the waist: every unit priced once, and options that cannot help dropped.

The only caller of cost models on the way to a plan.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import CostModel, ShardWork
from cost_models.vocabulary import NUM_TIERS
from planner.domain.problem import Problem
from planner.enumerate import Options, table_rank_allowed
from planner.memory import capacity_bytes, ledger_rules, shard_ledger
from planner.phases import phase_windows
from planner.priced import Objective, PricedOptions, Scope
from planner.work import build_work, table_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def price(problem: Problem, options: Options, cost_model: CostModel) -> PricedOptions:
    """Price every unit of every option, in the order of ``options``."""
    flat = [(o, piece) for o, option in enumerate(options.options) for piece in option.cut.pieces]
    unit_option = np.array([o for o, _ in flat], dtype=np.int64)
    table = np.array([option.table for option in options.options], dtype=np.int64)
    scheme = np.array([option.scheme for option in options.options], dtype=np.int8)
    kernel = np.array([option.kernel for option in options.options], dtype=np.int8)
    scope = np.array([piece.scope for _, piece in flat], dtype=np.int8)
    work = build_work(
        problem,
        table_columns(problem),
        table=table[unit_option],
        scheme=scheme[unit_option],
        kernel=kernel[unit_option],
        shard_columns=np.array([piece.num_columns for _, piece in flat], dtype=np.int64),
    )
    seconds = cost_model.predict(work, problem.cluster.hardware).seconds
    # The last row block is shorter than the others; every rank is charged a full one.
    last_rows = work.table_rows - work.shard_rows * (work.row_shards - 1)
    per_rank, last = (
        _device_bytes(problem, work, cost_model, table=table[unit_option], stored_rows=rows)
        for rows in (work.shard_rows, last_rows)
    )
    if problem.cluster.num_hosts == 1:
        scope = np.where(scope == Scope.HOST, np.int8(Scope.WORLD), scope)  # the same ranks
    cluster = problem.cluster
    touched = np.array([1, cluster.ranks_per_host, cluster.world_size])[scope][:, None]
    return PricedOptions(
        objective=Objective.STEP_TIME if problem.objective == "step_time" else Objective.MAX_RANK_TIME,
        option_table=table,
        option_same_host=np.array([o.cut.same_host and cluster.num_hosts > 1 for o in options.options], dtype=np.bool_),
        unit_option=unit_option,
        unit_scope=scope,
        unit_seconds=seconds,
        unit_bytes=per_rank,
        unit_total_bytes=per_rank * (touched - 1) + last,
        capacity_bytes=capacity_bytes(problem),
        host_of_rank=np.arange(cluster.world_size, dtype=np.int64) // cluster.ranks_per_host,
        table_rank_allowed=table_rank_allowed(problem),
        phase_weight=cost_model.counted_phases.astype(np.float64),
        phase_window_seconds=phase_windows(problem),
        same_rank=tuple(np.array(sorted(group), dtype=np.int64) for group in problem.same_rank),
        apart=tuple(np.array(sorted(group), dtype=np.int64) for group in problem.apart),
        option_source=np.arange(len(options.options), dtype=np.int64),
    )


def _device_bytes(
    problem: Problem, work: ShardWork, cost_model: CostModel, *, table: Ints, stored_rows: Ints
) -> Floats:
    """Bytes of shards by tier, (num_shards, NUM_TIERS); all of them in the device's tier."""
    rules = ledger_rules(cost_model.ledger)
    result = np.zeros((work.num_shards, NUM_TIERS))
    ledger = shard_ledger(problem, work, table=table, stored_rows=stored_rows, rules=rules)
    result[:, problem.cluster.device_tier] = ledger.sum(axis=1)
    return result


def restrict(priced: PricedOptions, keep: Bools) -> PricedOptions:
    """Return the same problem with some of its options, indices renumbered."""
    keep_unit = keep[priced.unit_option]
    new_index = np.cumsum(keep) - 1
    return replace(
        priced,
        option_table=priced.option_table[keep],
        option_same_host=priced.option_same_host[keep],
        option_source=priced.option_source[keep],
        unit_option=new_index[priced.unit_option[keep_unit]],
        unit_scope=priced.unit_scope[keep_unit],
        unit_seconds=priced.unit_seconds[keep_unit],
        unit_bytes=priced.unit_bytes[keep_unit],
        unit_total_bytes=priced.unit_total_bytes[keep_unit],
    )


def prune(priced: PricedOptions) -> PricedOptions:
    """Drop options that no plan can use and options that no plan needs.

    Two options of a table with the same shape are compared unit by unit, and one that is
    nowhere better is dropped: swapping it for the other in any plan keeps every rank's
    seconds and bytes at most as large, so that no optimum is lost.
    """
    usable = restrict(priced, ~unusable_options(priced))
    return restrict(usable, ~dominated_options(usable))


def unusable_options(priced: PricedOptions) -> Bools:
    """Return options of which one unit alone exceeds every rank that may hold it, shape (O,)."""
    too_large = np.any(priced.unit_bytes > roomiest_site(priced), axis=1)
    unusable = np.zeros(priced.num_options, dtype=np.bool_)
    unusable[priced.unit_option[too_large]] = True
    return unusable


def roomiest_site(priced: PricedOptions) -> Floats:
    """Return what the roomiest site of each unit has per rank, (U, M); negative where it may use none.

    A rank has its own capacity; a host, or the world, that of its smallest rank.
    """
    by_host = (priced.num_tables, priced.num_hosts, -1)
    ranks_allowed = priced.table_rank_allowed
    hosts_allowed = ranks_allowed.reshape(by_host).all(axis=2)
    room = np.empty((priced.num_tables, len(Scope), priced.num_tiers))
    for tier in range(priced.num_tiers):
        capacity = priced.capacity_bytes[:, tier]
        of_host = capacity.reshape(priced.num_hosts, -1).min(axis=1)
        room[:, Scope.RANK, tier] = np.where(ranks_allowed, capacity, -1.0).max(axis=1)
        room[:, Scope.HOST, tier] = np.where(hosts_allowed, of_host, -1.0).max(axis=1)
        room[:, Scope.WORLD, tier] = np.where(ranks_allowed.all(axis=1), capacity.min(), -1.0)
    result: Floats = room[priced.option_table[priced.unit_option], priced.unit_scope]
    return result


def dominated_options(priced: PricedOptions) -> Bools:
    """Return options that another option of the same table replaces at no cost, shape (O,)."""
    first, last = priced.units_of_option
    cost = np.concatenate([priced.unit_seconds * (priced.phase_weight > 0), priced.unit_bytes], axis=1)
    dominated = np.zeros(priced.num_options, dtype=np.bool_)
    shapes = [tuple(priced.unit_scope[first[o] : last[o]]) for o in range(priced.num_options)]
    start, stop = priced.options_of_table
    for table in range(priced.num_tables):
        options = range(int(start[table]), int(stop[table]))
        for o in options:
            for other in options:
                if other == o or dominated[other] or shapes[o] != shapes[other]:
                    continue
                if priced.option_same_host[other] and not priced.option_same_host[o]:
                    continue  # the other one is less free to place
                mine, theirs = cost[first[o] : last[o]], cost[first[other] : last[other]]
                if np.all(theirs <= mine) and (other < o or np.any(theirs < mine) or priced.option_same_host[o]):
                    dominated[o] = True
                    break
    return dominated
