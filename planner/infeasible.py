"""Why there is no plan: which resource is short, by how much, and the way out.

Every shortfall here is a proof: a table without any option, a table that no rank can hold
however it is cut, or tables that together need more bytes than the cluster has.
"""

import numpy as np
from numpy.typing import NDArray

from cost_models.vocabulary import Tier
from planner.domain.plan import Shortfall
from planner.domain.problem import Problem
from planner.enumerate import Options
from planner.priced import PricedOptions
from planner.pricing import unusable_options
from planner.units import format_bytes

Floats = NDArray[np.float64]

_MOST = 20  # tables that are named


def missing_options(problem: Problem, options: Options) -> tuple[Shortfall, ...]:
    """Return one shortfall per table that has no legal option at all."""
    return tuple(
        Shortfall(
            resource="options",
            required_bytes=0.0,
            available_bytes=0.0,
            scope="table",
            table=problem.tables[index].name,
            message=f'table "{problem.tables[index].name}" has no legal option: {"; ".join(reasons)}',
            hint="relax the table's constraints or change its shape as the reasons say",
        )
        for index, reasons in list(options.refusals.items())[:_MOST]
    )


def memory_shortfalls(problem: Problem, priced: PricedOptions) -> tuple[Shortfall, ...]:
    """Return proofs that the tables do not fit; empty where none was found.

    ``priced`` holds all legal options, before any was dropped for its size.
    """
    return _tables_too_large(problem, priced) or _cluster_too_small(problem, priced)


def _tables_too_large(problem: Problem, priced: PricedOptions) -> tuple[Shortfall, ...]:
    """Tables of which every option has a piece that fits no rank."""
    tier = problem.cluster.device_tier
    unusable = unusable_options(priced)
    hopeless = np.ones(priced.num_tables, dtype=np.bool_)
    hopeless[priced.option_table[~unusable]] = False
    largest = np.zeros(priced.num_options)
    np.maximum.at(largest, priced.unit_option, priced.unit_bytes[:, tier])
    smallest = np.full(priced.num_tables, np.inf)
    np.minimum.at(smallest, priced.option_table, largest)
    found = []
    for table in np.flatnonzero(hopeless)[:_MOST]:
        allowed = priced.table_rank_allowed[table]
        free = float(priced.capacity_bytes[allowed, tier].max(initial=0.0))
        name, need = problem.tables[table].name, float(smallest[table])
        found.append(
            Shortfall(
                resource=tier.label,
                required_bytes=need,
                available_bytes=free,
                scope="rank",
                table=name,
                message=(
                    f'table "{name}": its finest legal cut still puts {format_bytes(need)} on one rank, which has'
                    f" {format_bytes(free)} of {tier.label} after reservations ({format_bytes(need - free)} short)"
                ),
                hint="allow more sharding_types, lower min_partition, use more ranks, or a smaller data_type",
            )
        )
    return tuple(found)


def _cluster_too_small(problem: Problem, priced: PricedOptions) -> tuple[Shortfall, ...]:
    """The least bytes of all tables against all ranks together."""
    tier = problem.cluster.device_tier
    need = least_total_bytes(priced, tier)
    have = float(priced.capacity_bytes[:, tier].sum())
    if need <= have:
        return ()
    return (_cluster_shortfall(problem, tier, need, have),)


def _cluster_shortfall(problem: Problem, tier: Tier, need: float, have: float) -> Shortfall:
    cluster = problem.cluster
    per_host = have / cluster.num_hosts
    hosts = int(np.ceil(need / per_host)) if per_host > 0 else 0
    way_out = f"use at least {hosts} hosts of this kind" if hosts else "lower the reservations"
    return Shortfall(
        resource=tier.label,
        required_bytes=need,
        available_bytes=have,
        scope="cluster",
        message=(
            f"the tables need at least {format_bytes(need)} of {tier.label} with optimizer state and buffers;"
            f" {cluster.world_size} ranks have {format_bytes(have)} after reservations"
            f" ({format_bytes(need - have)} short)"
        ),
        hint=f"{way_out}, a smaller data_type, or an optimizer with less state",
    )


def least_total_bytes(priced: PricedOptions, tier: Tier) -> float:
    """Sum over tables of the option with the fewest bytes over all its ranks."""
    touched = np.array([1, priced.num_ranks // priced.num_hosts, priced.num_ranks])[priced.unit_scope]
    total = np.zeros(priced.num_options)
    np.add.at(total, priced.unit_option, priced.unit_bytes[:, tier] * touched)
    least = np.full(priced.num_tables, np.inf)
    np.minimum.at(least, priced.option_table, total)
    return float(least.sum())
