"""What an assignment costs, and whether it is allowed: arrays in, numbers out.

Partitioners report no objective of their own; this module computes it. The pipeline
compares it with :mod:`planner.score`, which starts again from the geometry of the plan.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.priced import Assignment, Objective, PricedOptions, Scope

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """Seconds and bytes that an assignment puts on every rank."""

    seconds: Floats  # (R, P)
    bytes: Floats  # (R, M)


def rank_loads(priced: PricedOptions, assignment: Assignment) -> Loads:
    """Add up what every rank carries."""
    placed = np.flatnonzero(assignment.unit_site >= 0)
    site, scope = assignment.unit_site[placed], priced.unit_scope[placed]
    return Loads(
        seconds=_spread(priced, priced.unit_seconds[placed], site, scope),
        bytes=_spread(priced, priced.unit_bytes[placed], site, scope),
    )


def _spread(priced: PricedOptions, amounts: Floats, site: Ints, scope: NDArray[np.int8]) -> Floats:
    """Add rows of ``amounts`` to the ranks that their units touch, shape (R, columns)."""
    on_rank, on_host, on_world = (scope == kind for kind in (Scope.RANK, Scope.HOST, Scope.WORLD))
    ranks = np.zeros((priced.num_ranks, amounts.shape[1]))
    hosts = np.zeros((priced.num_hosts, amounts.shape[1]))
    np.add.at(ranks, site[on_rank], amounts[on_rank])
    np.add.at(hosts, site[on_host], amounts[on_host])
    total: Floats = ranks + hosts[priced.host_of_rank] + np.sum(amounts[on_world], axis=0)
    return total


def objective_seconds(priced: PricedOptions, seconds: Floats) -> float:
    """Return the objective of rank loads, shape (R, P)."""
    if priced.objective is Objective.MAX_RANK_TIME:
        return max_rank_time(priced, seconds)
    return step_time(priced, seconds)


def step_time(priced: PricedOptions, seconds: Floats) -> float:
    """Sum over counted phases of the slowest rank, less what dense compute hides."""
    slowest = np.max(seconds, axis=0)
    exposed = np.maximum(slowest - priced.phase_window_seconds, 0.0)
    return float(np.sum(priced.phase_weight * exposed))


def max_rank_time(priced: PricedOptions, seconds: Floats) -> float:
    """Slowest rank's sum over counted phases; hidden time counts in full, as TorchRec has it."""
    return float(np.max(seconds @ priced.phase_weight))


def violations(priced: PricedOptions, assignment: Assignment) -> list[str]:
    """Return every broken rule of an assignment in words; empty means valid."""
    faults: list[str] = []
    tables = np.arange(priced.num_tables)
    if not np.array_equal(priced.option_table[assignment.chosen_option], tables):
        return ["a table has no option of its own"]
    chosen = np.zeros(priced.num_options, dtype=np.bool_)
    chosen[assignment.chosen_option] = True
    placed = assignment.unit_site >= 0
    if not np.array_equal(placed, chosen[priced.unit_option]):
        return ["placed units are not the units of the chosen options"]
    sites = np.array([priced.num_ranks, priced.num_hosts, 1])[priced.unit_scope]
    if np.any(assignment.unit_site[placed] >= sites[placed]):
        return ["a unit is placed on a site that does not exist"]
    touched = touched_ranks(priced, assignment)
    if np.any(touched & ~priced.table_rank_allowed):
        faults.append("a table is on a rank that it may not use")
    excess = rank_loads(priced, assignment).bytes - priced.capacity_bytes
    for rank, tier in zip(*np.nonzero(excess > 0), strict=True):
        faults.append(f"rank {rank} exceeds tier {tier} by {excess[rank, tier]:.0f} bytes")
    for option in np.flatnonzero(chosen & priced.option_same_host):
        units = np.flatnonzero((priced.unit_option == option) & placed)
        if len(np.unique(priced.host_of_rank[assignment.unit_site[units]])) > 1:
            faults.append(f"option {option} must keep its units on one host")
    for group in priced.same_rank:
        ranks = np.any(touched[group], axis=0)
        if np.count_nonzero(ranks) != 1:
            faults.append("tables that must share one rank do not")
    for group in priced.apart:
        if np.any(np.count_nonzero(touched[group], axis=0) > 1):
            faults.append("tables that must stay apart share a rank")
    return faults


def touched_ranks(priced: PricedOptions, assignment: Assignment) -> NDArray[np.bool_]:
    """Return which tables have a shard on which ranks, shape (T, R)."""
    touched = np.zeros((priced.num_tables, priced.num_ranks), dtype=np.bool_)
    for unit in np.flatnonzero(assignment.unit_site >= 0):
        table = priced.option_table[priced.unit_option[unit]]
        touched[table] |= ranks_of_site(priced, int(priced.unit_scope[unit]), int(assignment.unit_site[unit]))
    return touched


def ranks_of_site(priced: PricedOptions, scope: int, site: int) -> NDArray[np.bool_]:
    """Return the ranks that a unit of this scope touches on this site, shape (R,)."""
    if scope == Scope.WORLD:
        return np.ones(priced.num_ranks, dtype=np.bool_)
    sites: Ints = np.arange(priced.num_ranks) if scope == Scope.RANK else priced.host_of_rank
    touched: NDArray[np.bool_] = sites == site
    return touched
