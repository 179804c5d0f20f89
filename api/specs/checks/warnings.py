"""What will happen to tables that the accelerators' own memory cannot hold, said before anything is solved."""

from api.schemas.spec import SpecDocument
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import CUSTOM, load_profile
from cost_models.protocol import Ledger
from cost_models.vocabulary import DEVICE_KERNELS, Kernel, Tier
from planner.domain.formats.units import format_bytes
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.host_memory_fallback import allow_host_memory, explain_missing_host_memory, spilled_kernels
from planner.pricing.memory import capacity_bytes, ledger_rules


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
    wider = allow_host_memory(problem)
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
        hint = (
            explain_missing_host_memory(problem)
            or "use more ranks, a smaller data_type or an optimizer with less state"
        )
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


#: GB for bytes, TB/s for bytes/s and the like are off by a thousand and more; changed hardware hardly ever is.
_LEAST_FACTOR = 500.0


def unlikely_numbers(spec: SpecDocument, hardware: Hardware, base: str) -> tuple[Issue, ...]:
    """Return a warning for each number whose order of magnitude no version of the profile's hardware has.

    A number of 0 says that there is none of it, which is likely enough.
    """
    if spec.hardware.profile == CUSTOM:
        return ()
    issues = []
    of_profile = load_profile(spec.hardware.profile).numbers
    for name in spec.hardware.overrides.__pydantic_extra__:
        if name not in of_profile or not of_profile[name].value or not hardware.numbers[name].value:
            continue
        given, usual = hardware.numbers[name].value, of_profile[name].value
        if max(given / usual, usual / given) >= _LEAST_FACTOR:
            unit = of_profile[name].unit.replace("_per_", " per ")
            issues.append(
                Issue(
                    code="unlikely-number",
                    pointer=f"{base}/hardware/overrides/{name}",
                    message=f"{name} is {given:g}, and the profile {spec.hardware.profile} has {usual:g}: in {unit}",
                    hint=f"give it in {unit}, or leave it out for the number of the profile",
                    severity="warning",
                )
            )
    return tuple(issues)
