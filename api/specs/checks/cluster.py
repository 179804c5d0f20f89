"""Rules of a spec that need more than one field, each with a pointer, a number and a way out."""

import math
from collections import Counter
from collections.abc import Iterator

from api.schemas.spec import SpecDocument
from api.specs.checks.issue import issue
from api.specs.input.json import quoted
from cost_models.hardware.hardware import Hardware
from cost_models.registry import cost_model_names, make_cost_model
from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Tier
from planner.domain.formats.units import format_bytes
from planner.domain.problem.cluster import MAX_RANKS
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.registry import RUNTIMES
from planner.options.runtimes.sparsecore.geometry import is_power_of_two, padded
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.options.schemes.blocks import has_empty_block

MAX_TOTAL_NAME_LENGTH = 4 * 1024**2


def check_spec(spec: SpecDocument, hardware: Hardware | None, base: str) -> Iterator[Issue]:
    """Yield every broken rule but those of single tables and of groups; ``base`` stands before every pointer."""
    yield from _check_cluster(spec, hardware, base)
    yield from _check_names(spec, base)


def check_memory(problem: Problem, base: str) -> tuple[Issue, ...]:
    """Return the tables whose weights alone exceed all memory of the cluster, with the numbers.

    Such a table is a mistake in the spec (rows mistyped, hosts forgotten). Whatever fits the
    bare cluster but not what reservations and other tables leave is an INFEASIBLE solve.
    """
    cluster = problem.cluster
    device = cluster.device_tier
    of_tier = cluster.bytes_by_rank().sum(axis=0).tolist()
    room: dict[frozenset[Kernel] | None, tuple[list[Tier], float]] = {}
    issues = []
    for index, table in enumerate(problem.tables):
        named = table.constraints.compute_kernels
        if named not in room:
            kernels = (HOST_KERNELS if device is Tier.HBM else DEVICE_KERNELS) if named is None else named
            runtime = RUNTIMES[problem.runtime]
            tiers = sorted({tier for kernel in kernels for tier in row_tiers(kernel, cluster, runtime)})
            room[named] = tiers, sum(of_tier[tier] for tier in tiers)
        tiers, available = room[named]
        needed = table.least_weight_bytes
        if needed > available:
            issues.append(
                issue(
                    f"{base}/model/tables/{index}",
                    f"table {quoted(table.name)} has {format_bytes(needed)} of weights and the whole cluster has "
                    f"{format_bytes(available)} of {' and '.join(tier.label for tier in tiers)}",
                    f"{_more_ranks(needed, available, problem.world_size)}{_other_kernels(named)}use a narrower "
                    "data_type, or check num_embeddings",
                    code="table-too-large",
                )
            )
    return tuple(issues)


def _more_ranks(needed: float, available: float, world_size: int) -> str:
    """Return the advice to add ranks, where ranks have any room at all, with the number that these weights fill."""
    if available <= 0:
        return ""
    num_ranks = math.ceil(needed * world_size / available)
    return f"plan for more ranks (these weights alone fill {num_ranks}; reservations and state come on top), "


def _other_kernels(named: frozenset[Kernel] | None) -> str:
    """Return the advice to allow memory beside the accelerators', where the spec names kernels that have none of it."""
    beside = ", ".join(sorted(kernel.label for kernel in HOST_KERNELS - DEVICE_KERNELS))
    return f"allow kernels of host memory ({beside}), " if named is not None and named <= DEVICE_KERNELS else ""


def _check_cluster(spec: SpecDocument, hardware: Hardware | None, base: str) -> Iterator[Issue]:
    if hardware is None:
        return
    yield from _check_scm(spec, hardware, base)
    yield from _check_devices(spec, hardware, base)
    per_host = spec.hardware.ranks_per_host or hardware.ranks_per_host
    if per_host > hardware.ranks_per_host and hardware.family != "custom":
        yield issue(
            f"{base}/hardware/ranks_per_host",
            f"{per_host} ranks per host, and the profile has {hardware.ranks_per_host}",
            f"use at most {hardware.ranks_per_host} and more hosts, or the profile custom",
        )
    world_size = spec.hardware.num_hosts * per_host
    yield from check_sparsecore(spec, world_size, base)
    if world_size > MAX_RANKS:
        yield issue(
            f"{base}/hardware/num_hosts",
            f"{spec.hardware.num_hosts} hosts x {per_host} ranks are {world_size} ranks",
            f"plan for at most {MAX_RANKS} ranks",
        )
    overrides = spec.hardware.overrides
    for name in type(overrides).model_fields:
        by_rank = getattr(overrides, name)
        if by_rank is not None and len(by_rank) != world_size:
            yield issue(
                f"{base}/hardware/overrides/{name}",
                f"{len(by_rank)} numbers for {world_size} ranks",
                "give one number for every rank",
            )
    if overrides.hbm_bytes_by_rank is None and not any(_number(hardware, name) for name in ("hbm_bytes", "ddr_bytes")):
        yield issue(
            f"{base}/hardware/overrides", "no rank has any memory", "give hbm_bytes, or ddr_bytes for hosts alone"
        )


def _check_devices(spec: SpecDocument, hardware: Hardware, base: str) -> Iterator[Issue]:
    """Devices that the runtime does not run on."""
    families = RUNTIMES[spec.runtime].device_families
    if families is not None and hardware.family not in families:
        yield issue(
            f"{base}/runtime",
            f"the runtime {spec.runtime} does not run on devices of the family {hardware.family}, which"
            f" {hardware.profile} has",
            f"use a profile of {' or '.join(sorted(families))}, or another runtime",
        )


def _check_scm(spec: SpecDocument, hardware: Hardware, base: str) -> Iterator[Issue]:
    """Storage-class memory that no price could be made of."""
    if not _number(hardware, "scm_bytes"):
        return
    for name, what in (("scm_bytes_per_second", "read"), ("scm_write_bytes_per_second", "written")):
        if not hardware.has(name):
            yield issue(
                f"{base}/hardware/overrides/{name}",
                f"every rank has {format_bytes(_number(hardware, 'scm_bytes'))} of scm, and how fast they are {what} is"
                " not known",
                f"give {name}, or set scm_bytes to 0",
            )
    if not RUNTIMES[spec.runtime].supports_scm or spec.cost_model not in cost_model_names():
        return
    if make_cost_model(spec.cost_model).ledger == "torchrec":  # which counts no such memory
        yield issue(
            f"{base}/cost_model",
            f"the cost model {spec.cost_model} has no price of rows in scm, which the runtime {spec.runtime} has",
            "use the cost model roofline, or set hardware.overrides.scm_bytes to 0",
        )


def _number(hardware: Hardware, name: str) -> float:
    return hardware.numbers[name].value if hardware.has(name) else 0.0


def _check_names(spec: SpecDocument, base: str) -> Iterator[Issue]:
    first: dict[str, int] = {}
    total = 0
    for index, table in enumerate(spec.model.tables):
        total += len(table.name)
        if first.setdefault(table.name, index) != index:
            yield issue(
                f"{base}/model/tables/{index}/name",
                f"table {quoted(table.name)} is also table number {first[table.name]} (counted from 0)",
                "give every table its own name",
                code="duplicate-name",
            )
        seen: set[str] = set()
        for number, feature in enumerate(table.features or ()):
            total += len(feature.name)
            if feature.name in seen:
                yield issue(
                    f"{base}/model/tables/{index}/features/{number}/name",
                    f"feature {quoted(feature.name)} stands twice in this table",
                    "name every feature of a table once",
                    code="duplicate-name",
                )
            seen.add(feature.name)
    if total > MAX_TOTAL_NAME_LENGTH:
        yield issue(
            f"{base}/model/tables",
            f"names are {total} characters in all, and at most {MAX_TOTAL_NAME_LENGTH} are taken",
            "shorten the names",
        )


def check_groups(spec: SpecDocument, base: str) -> Iterator[Issue]:
    """Yield what is wrong with groups of tables; ``base`` stands before every pointer."""
    known = {table.name for table in spec.model.tables}
    group_of: dict[str, int] = {}
    for kind in ("same_rank", "apart"):
        for number, group in enumerate(getattr(spec.constraints, kind)):
            where = f"{base}/constraints/{kind}/{number}"
            for position, name in enumerate(group):
                if name not in known:
                    yield issue(f"{where}/{position}", f"no table {quoted(name)}", "name a table of the spec")
            for name, count in Counter(group).items():
                if count > 1:
                    yield issue(where, f"{quoted(name)} stands {count} times in the group", "name it once")
            if kind == "same_rank":
                for name in group:
                    if group_of.setdefault(name, number) != number:
                        text = f"{quoted(name)} is also in group {group_of[name]}"
                        yield issue(where, text, "merge the two groups")
                continue
            together = Counter(group_of[name] for name in set(group) if name in group_of)
            for other, count in together.items():
                if count > 1:
                    yield issue(
                        where,
                        f"{count} of these tables must share a rank by same_rank group {other}",
                        "take them out of one of the two groups",
                    )


def check_sparsecore(spec: SpecDocument, num_chips: int, base: str) -> Iterator[Issue]:
    """Yield what keeps rows from being dealt out to all chips; nothing for other runtimes."""
    if spec.runtime != SparseCore.name:
        return
    if num_chips < 2 or not is_power_of_two(num_chips):
        yield issue(
            f"{base}/hardware/num_hosts",
            f"{num_chips} chips, and the runtime sparsecore deals rows out to a power of two, 2 or more",
            "use a power of two of hosts, or another ranks_per_host",
        )
        return
    for index, table in enumerate(spec.model.tables):
        if has_empty_block(table.num_embeddings, num_chips):
            yield issue(
                f"{base}/model/tables/{index}/num_embeddings",
                f"the {table.num_embeddings} rows of table {quoted(table.name)} leave some of {num_chips} chips without"
                " any",
                f"plan for {padded(table.num_embeddings, num_chips)} rows: SparseCores pad tables to more than that",
            )
