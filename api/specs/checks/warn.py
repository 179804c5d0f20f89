"""The last stage: what is legal in a spec and probably not meant, or will surprise, before anything is solved."""

from collections.abc import Iterator
from functools import partial

from api.schemas.spec import SpecDocument
from api.specs.assumptions import prices_caches_alone, shown_names
from api.specs.checks.checkpoint_plan import checkpoint_plan_warnings
from api.specs.checks.index_dedup import unknown_repeats
from api.specs.checks.operators import crowded_operators
from api.specs.checks.row_orders import unknown_row_orders
from api.specs.checks.solver import warm_start_warnings
from api.specs.checks.unlikely_numbers import unlikely_numbers
from api.specs.state import SpecState
from cost_models.text.number_text import counted
from cost_models.vocabulary import DEVICE_KERNELS, Kernel
from planner.domain.formats.units import format_bytes
from planner.domain.plan.movement import PreviousPlan
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.host_memory_fallback import (
    allow_host_memory,
    explain_missing_host_memory,
    spilled_labels,
    unused_tiers,
)
from planner.pricing.memory.ledger import capacity_bytes

TORCHREC = "torchrec"
_warning = partial(Issue, severity="warning")


def warn(state: SpecState) -> Iterator[Issue]:
    """Yield the warnings of a spec without issues."""
    problem, model = state.problem, state.model
    assert problem is not None
    assert model is not None
    yield from unlikely_numbers(state.spec.hardware)  # first: the cause of much that follows
    yield from model.warnings
    yield from _unused_tables(problem)
    yield from _statistics_of_caches(state.spec)
    if state.spec.cost_model != TORCHREC:  # which prices equal blocks, whatever is known
        yield from unknown_row_orders(problem)
    yield from crowded_operators(problem)
    yield from unknown_repeats(problem)
    *_, largest = problem.of_each_group()
    yield from _exceeded_memory(largest)
    yield from _checkpoints_between_averages(problem)
    yield from state.statistics_warnings
    if state.of_checkpoint is not None:
        yield from state.of_checkpoint.warnings
        yield from checkpoint_plan_warnings(problem)
    yield from warm_start_warnings(state)
    if state.previous is not None:
        yield from state.previous.warnings
        yield from _previous_plan(state.previous.plan, problem)


def _unused_tables(problem: Problem) -> Iterator[Issue]:
    names = [table.name for table in problem.tables if table.ids_per_sample == 0]
    if names:
        yield _warning(
            code="tables-never-looked-up",
            pointer="/model/tables",
            message=f"{len(names)} of {counted(len(problem.tables), 'table')} "
            f"{'is never looked up and still takes' if len(names) == 1 else 'are never looked up and still take'} "
            f"memory: {shown_names(names)}",
            hint="drop them from the model, or check their pooling factors",
        )


def _checkpoints_between_averages(problem: Problem) -> Iterator[Issue]:
    """Warn of checkpoints of replicas that are not alike: each shard is stored by one of the ranks that hold it."""
    groups, checkpoint = problem.replica_groups, problem.checkpoint
    if groups is None or checkpoint is None or groups.sizes[0] == groups.job.world_size:
        return
    between = groups.sync_interval_steps
    if checkpoint.interval_steps % between:
        yield _warning(
            code="checkpoint-between-averages",
            pointer="/checkpoint/interval_steps",
            message=f"a checkpoint every {counted(checkpoint.interval_steps, 'step')}, and sharding groups are averaged"
            f" every {counted(between, 'step')}: shards of some checkpoints come from groups that are not alike",
            hint=f"use a multiple of {between}, or average before each checkpoint",
        )


def _statistics_of_caches(spec: SpecDocument) -> Iterator[Issue]:
    """Warn of tables whose statistics are silent on distinct rows."""
    indices = [index for index, table in enumerate(spec.model.tables) if prices_caches_alone(table)]
    if indices:
        where = f"/model/tables/{indices[0]}/access/miss_ratio_curve" if len(indices) == 1 else "/model/tables"
        yield _warning(
            code="statistics-not-used",
            pointer=where,
            message=f"the miss_ratio_curve of {counted(len(indices), 'table')} prices caches and says nothing of"
            f" distinct rows: {shown_names([spec.model.tables[index].name for index in indices])}",
            hint="give zipf_alpha, reuse_histogram or access_cdf; until then every id may be a different row",
        )


def _exceeded_memory(problem: Problem) -> Iterator[Issue]:
    """Warn of weights that exceed the device's memory, and say what will be done about it.

    Counts what every plan needs at least: optimizer state, no buffers, and the narrowest of the allowed data types.
    """
    device = problem.cluster.device_tier
    room = capacity_bytes(problem).sum(axis=0)
    on_device = [table for table in problem.tables if _kernels(table) <= DEVICE_KERNELS]
    needed_bytes = sum(_least_bytes(table) for table in on_device)
    # of tables that name kernels of the device
    bound_bytes = sum(_least_bytes(table) for table in on_device if _kernels(table))
    device_bytes = float(room[device])
    if needed_bytes <= device_bytes:
        return
    message = f"weights and optimizer state take at least {format_bytes(needed_bytes)}, and all ranks together have"
    message += f" {format_bytes(device_bytes)} of {device.label} after reservations"
    wider = allow_host_memory(problem)
    host_tiers = unused_tiers(problem) if wider is not None else ()
    host_bytes = float(sum(room[tier] for tier in host_tiers))
    of_host = " and ".join(f"{format_bytes(float(room[tier]))} of {tier.label}" for tier in host_tiers)
    if wider is not None and bound_bytes <= device_bytes and needed_bytes <= device_bytes + host_bytes:
        message += (
            f": {spilled_labels(problem)} will be considered for tables that name no compute_kernels, in {of_host}"
        )
        hint = _host_memory_hint(problem)
    else:
        if host_bytes and bound_bytes <= device_bytes:
            message += f" and {of_host}"
        message += ": there will be no plan"
        hint = (
            explain_missing_host_memory(problem)
            or "use more ranks, a smaller data_type or an optimizer with less state"
        )
    yield _warning(code="larger-than-memory", pointer="/model/tables", message=message, hint=hint)


def _host_memory_hint(problem: Problem) -> str:
    """Return what would help a plan that reads rows from host memory."""
    spilling = [table for table in problem.tables if not _kernels(table)]
    unknown = sum(table.access is None for table in spilling)
    if unknown == 0:
        return "more ranks or a smaller data_type would keep more rows in the accelerators' memory"
    of = "these tables are" if unknown == len(spilling) else f"{unknown} of these {len(spilling)} tables are"
    return f"say how {of} looked up (access): this says how much of them a cache must hold"


def _kernels(table: Table) -> frozenset[Kernel]:
    """Return the kernels that a table names, none if the choice is left."""
    constraints = table.constraints
    if constraints.pinned is not None:
        return frozenset({constraints.pinned.compute_kernel})
    return frozenset() if constraints.compute_kernels is None else constraints.compute_kernels


def _least_bytes(table: Table) -> float:
    return table.least_weight_bytes + table.optimizer.state_bytes(table.num_embeddings, table.embedding_dim)


def _previous_plan(previous: PreviousPlan, problem: Problem) -> Iterator[Issue]:
    """Warn of a previous plan for another cluster, or for other tables."""
    placement, cluster = previous.placement, problem.cluster
    before = (placement.world_size, placement.ranks_per_host)
    if before != (cluster.world_size, cluster.ranks_per_host):
        yield _warning(
            code="other-cluster",
            pointer="/previous_plan",
            message=f"the previous plan is for {counted(before[0], 'rank')}, {before[1]} per host, and the cluster has "
            f"{cluster.world_size}, {cluster.ranks_per_host} per host: ranks of one number count as one rank",
            hint="rows that were on other ranks than they will be count as moved",
        )
    names = {table.name for table in problem.tables}
    if not any(placed.name in names for placed in placement.tables):
        yield _warning(
            code="no-common-table",
            pointer="/previous_plan",
            message="no table of the previous plan has the name of a table of this spec: nothing can stay",
            hint="check that it is a plan of this model",
        )
