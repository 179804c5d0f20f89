"""Which kernels a problem offers to tables that name none: host memory where the accelerators' own is too small."""

from dataclasses import replace

from cost_models.vocabulary import TIER_OF_KERNEL, Kernel, Tier
from planner.domain.placement import Placement, TablePlacement
from planner.domain.problem import DEVICE_KERNELS, HOST_KERNELS, Problem
from planner.domain.table import Table
from planner.enumerate import CACHE_LOAD_FACTORS

_NEEDED = ("host_link_bytes_per_second", "ddr_bytes_per_second")


def with_host_memory(problem: Problem) -> Problem | None:
    """Return the problem with kernels that keep rows in host memory; ``None`` where they are offered, or cannot be.

    Requests are served from the cards' own memory alone.

    Host memory is offered where the hardware states it and its rates: a number that nobody gave is not asked for on
    behalf of somebody who named no such kernel.
    """
    cluster = problem.cluster
    if (
        problem.serving is not None
        or problem.kernels != DEVICE_KERNELS
        or cluster.device_tier is not Tier.HBM
        or not cluster.has_tier(Tier.DDR)
    ):
        return None
    if not all(cluster.hardware.has(number) for number in _NEEDED):
        return None
    return replace(problem, kernels=HOST_KERNELS)


def with_kernels_of(problem: Problem, placement: Placement) -> Problem:
    """Return the problem with the kernels and cached shares that a plan of it has among those listed."""
    if any(TIER_OF_KERNEL.get(placed.compute_kernel) is Tier.DDR for placed in placement.tables):
        problem = replace(problem, kernels=problem.kernels | HOST_KERNELS)
    placed_of = {placed.name: placed for placed in placement.tables}
    tables = tuple(_with_share(table, placed_of.get(table.name)) for table in problem.tables)
    return replace(problem, tables=tables)


def _with_share(table: Table, placed: TablePlacement | None) -> Table:
    """List the cached share of a plan beside the usual ones, and where it splits a table, if the user names none."""
    share = None if placed is None else placed.cache_load_factor
    if placed is not None and placed.hot_rows and table.constraints.hot_row_fractions is None:
        hot = placed.hot_rows / table.num_embeddings
        table = replace(table, constraints=replace(table.constraints, hot_row_fractions=(hot,)))
    is_listed = table.constraints.cache_load_factors is not None or share in CACHE_LOAD_FACTORS
    if is_listed or share is None or not 0 < share <= 1:
        return table
    shares = tuple(sorted({*CACHE_LOAD_FACTORS, share}))
    return replace(table, constraints=replace(table.constraints, cache_load_factors=shares))


def spilled_kernels() -> tuple[Kernel, ...]:
    """Return the kernels that are offered only where the accelerators' memory is too small."""
    return tuple(sorted(HOST_KERNELS - DEVICE_KERNELS))
