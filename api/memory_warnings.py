"""What will happen to tables that the accelerators' own memory cannot hold, said before anything is solved."""

from cost_models.protocol import Ledger
from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem import DEVICE_KERNELS, Problem
from planner.domain.table import Table
from planner.errors import Issue
from planner.memory import capacity_bytes, ledger_rules
from planner.offers import spilled_kernels, why_not_host_memory, with_host_memory
from planner.units import format_bytes


def outgrown_memory(problem: Problem, ledger: Ledger, base: str) -> tuple[Issue, ...]:
    """Return one warning where the weights exceed the device's memory, and what will be done about it.

    Counts what every plan needs at least: no buffers, the narrowest of the allowed data types, and optimizer state
    where the ``ledger`` of the cost model counts the real one.
    """
    device = problem.cluster.device_tier
    room = capacity_bytes(problem).sum(axis=0)
    has_state = ledger_rules(ledger).exact_optimizer_state
    stays = need = 0.0
    for table in problem.tables:
        named = _kernels(table)
        if not named <= DEVICE_KERNELS:
            continue
        size = _least_bytes(table, has_state=has_state)
        need += size
        if named:
            stays += size
    have = float(room[device])
    if need <= have:
        return ()
    what = "weights and optimizer state" if has_state else "weights"
    message = f"{what} take at least {format_bytes(need)}, and all ranks together have {format_bytes(have)} of"
    message += f" {device.label} after reservations"
    wider = with_host_memory(problem)
    host = float(room[Tier.DDR]) if wider is not None else 0.0
    if wider is not None and stays <= have and need <= have + host:
        offered = " and ".join(kernel.label for kernel in spilled_kernels())
        message += f": {offered} will be considered for tables that name no compute_kernels, in {format_bytes(host)}"
        message += " of ddr"
        hint = _better_known(problem)
    else:
        if host and stays <= have:
            message += f" and {format_bytes(host)} of ddr"
        message += ": there will be no plan"
        hint = why_not_host_memory(problem) or "use more ranks, a smaller data_type or an optimizer with less state"
    return (
        Issue(
            code="larger-than-memory", pointer=f"{base}/model/tables", message=message, hint=hint, severity="warning"
        ),
    )


def _better_known(problem: Problem) -> str:
    """Say what would help a plan that reads rows from host memory."""
    spilling = [table for table in problem.tables if not _kernels(table)]
    unknown = sum(table.access is None for table in spilling)
    if unknown == 0:
        return "more ranks or a smaller data_type would keep more rows in the accelerators' memory"
    of = "these tables are" if unknown == len(spilling) else f"{unknown} of these {len(spilling)} tables are"
    return f"say how {of} looked up (access): it tells how much of them a cache must hold"


def _kernels(table: Table) -> frozenset[Kernel]:
    """Return the kernels that a table names, none where the choice is left."""
    asked = table.constraints
    if asked.pinned is not None:
        return frozenset({asked.pinned.compute_kernel})
    return frozenset() if asked.compute_kernels is None else asked.compute_kernels


def _least_bytes(table: Table, *, has_state: bool) -> float:
    state = table.optimizer.state_bytes(table.num_embeddings, table.embedding_dim) if has_state else 0.0
    return table.least_weight_bytes + state
