"""Rules of the cluster: ranks, memory, devices, and what the runtime asks of them."""

import math

from api.schemas.spec import HardwareOverrides
from api.specs.checks.unlikely_numbers import memory_slips
from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.analytic.torchrec import TorchRecModel
from cost_models.hardware.hardware import Hardware
from cost_models.registry import cost_model_names
from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Tier
from planner.domain.formats.units import format_bytes
from planner.domain.problem.cluster import MAX_RANKS
from planner.domain.problem.table import Table
from planner.options.host_memory_fallback import host_kernels
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES
from planner.options.runtimes.sparsecore.geometry import is_power_of_two, padded
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.options.schemes.blocks import has_empty_block

_OVERRIDES = "/hardware/overrides"
_INSIDE = "intra_host_bytes_per_second"
_SIZES_SHOWN = 4
_MEMORY = tuple(f"{_OVERRIDES}/{name}" for name in ("hbm_bytes", "ddr_bytes", "hbm_bytes_by_rank"))


def check_cluster(state: SpecState, issues: IssueCollector) -> None:
    """Report what is wrong with the cluster, if its hardware is known."""
    spec, hardware = state.spec, state.hardware
    if hardware is None:
        return
    _check_scm(state, hardware, issues)
    _check_devices(state, hardware, issues)
    per_host = spec.hardware.ranks_per_host or hardware.ranks_per_host
    if per_host > hardware.ranks_per_host and hardware.family != "custom":
        issues.report(
            "/hardware/ranks_per_host",
            f"{per_host} ranks per host, and the profile has {hardware.ranks_per_host}",
            f"use at most {hardware.ranks_per_host}{_elsewhere(state, hardware)}, or the profile custom",
        )
    world_size = spec.hardware.num_hosts * per_host
    if spec.hardware.pod_size is not None:
        _check_pods(state, hardware, spec.hardware.pod_size, issues)
    _check_sparsecore(state, world_size, issues)
    if world_size > MAX_RANKS:
        issues.report(
            "/hardware/num_hosts",
            f"{spec.hardware.num_hosts} hosts x {per_host} ranks are {world_size} ranks",
            f"plan for at most {MAX_RANKS} ranks",
            reads=state.rank_fields,
        )
    for name in HardwareOverrides.model_fields:
        by_rank = getattr(spec.hardware.overrides, name)
        if by_rank is not None and len(by_rank) != world_size:
            message, hint = f"{len(by_rank)} numbers for {world_size} ranks", "give one number for every rank"
            issues.report(f"{_OVERRIDES}/{name}", message, hint, reads=state.rank_fields)
    has_memory = any(_number(hardware, name) for name in ("hbm_bytes", "ddr_bytes"))
    if spec.hardware.overrides.hbm_bytes_by_rank is None and not has_memory:
        hint = "give hbm_bytes, or ddr_bytes for hosts alone"
        issues.report(_OVERRIDES, "no rank has any memory", hint, reads=_MEMORY)


def _elsewhere(state: SpecState, hardware: Hardware) -> str:
    """Return where more ranks than a host has may be: on other hosts, but for requests, which one host answers."""
    return "" if state.spec.serving is not None else f" and more hosts{_in_pods(state, hardware)}"


def _in_pods(state: SpecState, hardware: Hardware) -> str:
    """Return the advice to join hosts into pods, if those of the profile share links and the runtime has pods."""
    shares = hardware.domain_ranks > hardware.ranks_per_host and RUNTIMES[state.spec.runtime].has_pods
    return f", which pod_size joins (up to {hardware.domain_ranks} ranks share NVLink)" if shares else ""


def _check_pods(state: SpecState, hardware: Hardware, pod_size: int, issues: IssueCollector) -> None:
    """Report pods that the runtime does not have, that are no whole hosts, or that are larger than an NVLink domain."""
    spec, where = state.spec, "/hardware/pod_size"
    per_host = spec.hardware.ranks_per_host or hardware.ranks_per_host
    num_hosts = spec.hardware.num_hosts
    if not RUNTIMES[spec.runtime].has_pods:
        names = ", ".join(name for name, runtime in RUNTIMES.items() if runtime.has_pods)
        issues.report(
            where,
            f"pods of {pod_size} ranks, and the runtime {spec.runtime} takes no several hosts for one",
            f"leave pod_size out, or use a runtime that has pods: {names}",
            reads=("/runtime",),
        )
    if pod_size % per_host:
        issues.report(
            where,
            f"pods of {pod_size} ranks are no whole hosts of {per_host} ranks",
            f"use a multiple of {per_host}",
            reads=state.rank_fields[1:],
        )
    elif num_hosts % (pod_size // per_host):
        sizes = [per_host * hosts for hosts in range(1, num_hosts + 1) if num_hosts % hosts == 0]
        issues.report(
            where,
            f"{num_hosts * per_host} ranks are no whole pods of {pod_size}: the last one would be short",
            f"use {' or '.join(str(size) for size in sizes[-_SIZES_SHOWN:])}, or another num_hosts",
            reads=state.rank_fields,
        )
    domain = max(hardware.domain_ranks, hardware.ranks_per_host)
    states_links = spec.hardware.collective_laws is not None or _INSIDE in spec.hardware.overrides.__pydantic_extra__
    if pod_size > max(domain, per_host) and hardware.family != "custom" and not states_links:
        issues.report(
            where,
            f"pods of {pod_size} ranks, and an NVLink domain of {hardware.profile} has {domain}",
            f"use at most {domain}, or say how fast links inside such a pod are: overrides.{_INSIDE}, or"
            " collective_laws",
            reads=("/hardware/profile", f"{_OVERRIDES}/{_INSIDE}"),
        )


def _check_devices(state: SpecState, hardware: Hardware, issues: IssueCollector) -> None:
    """Report devices that the runtime does not run on."""
    families = RUNTIMES[state.spec.runtime].device_families
    if families is not None and hardware.family not in families:
        issues.report(
            "/runtime",
            f"the runtime {state.spec.runtime} does not run on devices of the family {hardware.family}, which"
            f" {hardware.profile} has",
            f"use a profile of {' or '.join(sorted(families))}, or another runtime",
        )


def _check_scm(state: SpecState, hardware: Hardware, issues: IssueCollector) -> None:
    """Report storage-class memory that has no price."""
    if not _number(hardware, "scm_bytes"):
        return
    for name, what in (("scm_bytes_per_second", "read"), ("scm_write_bytes_per_second", "written")):
        if not hardware.has(name):
            issues.report(
                f"{_OVERRIDES}/{name}",
                f"every rank has {format_bytes(_number(hardware, 'scm_bytes'))} of scm, and how fast they are {what} is"
                " not known",
                f"give {name}, or set scm_bytes to 0",
                reads=(f"{_OVERRIDES}/scm_bytes",),
            )
    runtime, cost_model = state.spec.runtime, state.spec.cost_model
    if not RUNTIMES[runtime].supports_scm or cost_model not in cost_model_names():
        return
    if cost_model == TorchRecModel.name:
        issues.report(
            "/cost_model",
            f"the cost model {cost_model} has no price of rows in scm, which the runtime {runtime} has",
            "use the cost model roofline, or set hardware.overrides.scm_bytes to 0",
            reads=("/runtime", f"{_OVERRIDES}/scm_bytes"),
        )


def _number(hardware: Hardware, name: str) -> float:
    return hardware.numbers[name].value if hardware.has(name) else 0.0


def _check_sparsecore(state: SpecState, num_chips: int, issues: IssueCollector) -> None:
    """Report what keeps SparseCores from dividing the rows of every table among all chips."""
    if state.spec.runtime != SparseCore.name or not issues.is_sound("/runtime", *state.rank_fields):
        return
    if num_chips < 2 or not is_power_of_two(num_chips):
        issues.report(
            "/hardware/num_hosts",
            f"{num_chips} chips, and the runtime sparsecore deals rows out to a power of two, 2 or more",
            "use a power of two of hosts, or another ranks_per_host",
        )
        return
    for where, table in state.written_tables():
        if has_empty_block(table.num_embeddings, num_chips):
            issues.report(
                f"{where}/num_embeddings",
                f"the {table.num_embeddings} rows of table {quoted(table.name)} leave some of {num_chips} chips without"
                " any",
                f"plan for {padded(table.num_embeddings, num_chips)} rows: SparseCores pad tables to more than that",
            )


def check_memory(state: SpecState, issues: IssueCollector) -> None:
    """Report the tables whose weights alone exceed all memory of the cluster, with the numbers.

    Such a table is a mistake in the spec (rows mistyped, hosts forgotten). Whatever fits the
    bare cluster but not what reservations and other tables leave is an INFEASIBLE solve.
    """
    cluster = state.cluster
    if cluster is None or not issues.is_sound("/runtime"):
        return
    runtime = RUNTIMES[state.spec.runtime]
    bytes_of_tier = cluster.bytes_by_rank().sum(axis=0).tolist()
    slips = memory_slips(state.spec.hardware)
    room: dict[frozenset[Kernel] | None, tuple[list[Tier], float]] = {}
    whole = "the whole cluster" if cluster.job is None else "a whole sharding group"
    for where, table in state.tables.items():
        named = table.constraints.compute_kernels
        if named not in room:
            kernels = (HOST_KERNELS if cluster.device_tier is Tier.HBM else DEVICE_KERNELS) if named is None else named
            tiers = sorted({tier for kernel in kernels for tier in row_tiers(kernel, cluster, runtime)})
            room[named] = tiers, sum(bytes_of_tier[tier] for tier in tiers)
        tiers, available = room[named]
        needed = table.least_weight_bytes
        if needed > available:
            message = (
                f"table {quoted(table.name)} has {format_bytes(needed)} of weights and {whole} has "
                f"{format_bytes(available)} of {' and '.join(tier.label for tier in tiers)}"
            )
            if slips:  # the cause, and one issue instead of one for each table
                for slip in slips:
                    reason = f"{slip.message}; {message}"
                    issues.report(slip.pointer, reason, slip.hint, code="table-too-large")
                return
            issues.report(
                where,
                message,
                f"{_more_ranks(needed, available, cluster.world_size)}{_other_kernels(table, runtime)}use a narrower "
                f"data_type, or check {'num_embeddings' if table.hash_table is None else 'hash_table.capacity'}",
                code="table-too-large",
            )


def _more_ranks(needed: float, available: float, world_size: int) -> str:
    """Return the advice to add ranks, if ranks have any room at all, with the number that these weights fill."""
    if available <= 0:
        return ""
    num_ranks = math.ceil(needed * world_size / available)
    return f"plan for more ranks (these weights alone fill {num_ranks}; reservations and state come on top), "


def _other_kernels(table: Table, runtime: Runtime) -> str:
    """Return the advice to allow other memory than the accelerators', if the spec names kernels that use none."""
    named = table.constraints.compute_kernels
    others = ", ".join(sorted(kernel.label for kernel in host_kernels(runtime, (table,))))
    is_bound = named is not None and named <= DEVICE_KERNELS
    return f"allow kernels of host memory ({others}), " if is_bound and others else ""
