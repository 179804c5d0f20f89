"""Which kernels a problem allows to tables that name none: host memory if the accelerators' own is too small."""

from collections.abc import Iterable
from dataclasses import replace

from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES
from planner.options.storages import CACHE_LOAD_FACTORS

#: Numbers that rows in each memory of the host need.
_NEEDED = {
    Tier.DDR: ("host_link_bytes_per_second", "ddr_bytes_per_second"),
    Tier.SCM: ("host_link_bytes_per_second", "scm_bytes_per_second", "scm_write_bytes_per_second"),
}


def allow_host_memory(problem: Problem) -> Problem | None:
    """Return the problem with kernels that store rows in host memory; ``None`` if it has them, or cannot have them.

    Host memory, or storage-class memory that the runtime can use, is allowed if the hardware states its size and its
    rates: a user who names no such kernel need not give these numbers. Replicas of groups are not kept alike there.
    """
    if problem.is_replicated or not unused_tiers(problem) or numbers_of_host_memory(problem):
        return None
    return replace(problem, kernels=HOST_KERNELS)


def numbers_of_host_memory(problem: Problem) -> tuple[str, ...]:
    """Return the names of the numbers that are missing for memory of the host whose size the hardware states."""
    needed = dict.fromkeys(number for tier in unused_tiers(problem) for number in _NEEDED[tier])
    return tuple(number for number in needed if not problem.cluster.hardware.has(number))


def explain_missing_host_memory(problem: Problem) -> str:
    """Return which numbers are missing, and where to give them; ``""`` if none is."""
    numbers = numbers_of_host_memory(problem)
    if not numbers:
        return ""
    places = " and ".join(f"/hardware/overrides/{number}" for number in numbers)
    stated = " and ".join(f"{tier.label}_bytes" for tier in unused_tiers(problem))
    return f"host memory ({stated}) was not considered, because the hardware does not state its rates: give {places}"


def unused_tiers(problem: Problem) -> tuple[Tier, ...]:
    """Return the memories of the host that could hold rows, if no allowed kernel stores any there."""
    cluster = problem.cluster
    if problem.kernels != DEVICE_KERNELS or cluster.device_tier is not Tier.HBM:
        return ()
    runtime = RUNTIMES[problem.runtime]
    tiers = {tier for kernel in spilled_kernels(problem) for tier in row_tiers(kernel, cluster, runtime)}
    return tuple(sorted(tier for tier in tiers if cluster.has_tier(tier)))


def with_kernels_of(problem: Problem, placement: Placement) -> Problem:
    """Return the problem with the kernels and cached shares that a plan of it has among those listed."""
    if any(placed.compute_kernel.facts.tier is Tier.DDR for placed in placement.tables):
        problem = replace(problem, kernels=problem.kernels | HOST_KERNELS)
    placed_of = {placed.name: placed for placed in placement.tables}
    tables = tuple(_with_share(table, placed_of.get(table.name)) for table in problem.tables)
    return replace(problem, tables=tables)


def _with_share(table: Table, placed: TablePlacement | None) -> Table:
    """List the cached share of a plan with the usual ones, and where it splits a table, if the user names none."""
    share = None if placed is None else placed.cache_load_factor
    if placed is not None and placed.hot_rows and table.constraints.hot_row_fractions is None:
        hot = placed.hot_rows / table.num_embeddings
        table = replace(table, constraints=replace(table.constraints, hot_row_fractions=(hot,)))
    if placed is not None and placed.compute_kernel.facts.is_hashed and share is not None:
        # One share is an option of a hash table: that of the plan.
        return replace(table, constraints=replace(table.constraints, cache_load_factors=(share,)))
    is_listed = table.constraints.cache_load_factors is not None or share in CACHE_LOAD_FACTORS
    if is_listed or share is None or not 0 < share <= 1:
        return table
    shares = tuple(sorted({*CACHE_LOAD_FACTORS, share}))
    return replace(table, constraints=replace(table.constraints, cache_load_factors=shares))


def spilled_kernels(problem: Problem) -> tuple[Kernel, ...]:
    """Return the kernels of a problem's runtime that are allowed only if the accelerators' memory is too small."""
    return host_kernels(RUNTIMES[problem.runtime], problem.tables)


def spilled_labels(problem: Problem) -> str:
    """Return the names of these kernels: ``"a and b"`` or ``"a, b and c"``."""
    *others, last = (kernel.label for kernel in spilled_kernels(problem))
    return f"{', '.join(others)} and {last}" if others else last


def host_kernels(runtime: Runtime, tables: Iterable[Table]) -> tuple[Kernel, ...]:
    """Return the kernels that a runtime has for some of the tables, and whose rows lie in the memory of the host."""
    offered = HOST_KERNELS - DEVICE_KERNELS
    found = {kernel for table in tables for kernel in runtime.kernels(table, Scheme.ROW_WISE, offered)}
    return tuple(sorted(found))
