"""Rules of a spec that need more than one field, each with a pointer, a number and a way out."""

import math
from collections import Counter
from collections.abc import Iterator

from api.json_input import quoted
from api.schemas.spec import SpecDocument
from api.schemas.table import AccessSpec, TableSpec
from api.sparsecore_checks import check_sparsecore
from cost_models.hardware import Hardware
from cost_models.registry import cost_model_names, make_cost_model
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.access import AccessCdf, MissRatioCurve, ReuseHistogram
from planner.domain.cluster import MAX_RANKS
from planner.domain.data_type import DATA_TYPES
from planner.domain.optimizer import OPTIMIZERS
from planner.domain.problem import DEVICE_KERNELS, HOST_KERNELS, Problem
from planner.domain.table import MAX_COLUMNS, Feature, Table, TableConstraints
from planner.errors import Issue
from planner.row_tiers import row_tiers
from planner.runtimes.base import Runtime
from planner.runtimes.registry import RUNTIMES
from planner.units import format_bytes

#: A table that a runtime cannot run is offered to it again with up to so many columns more.
MAX_PADDING = 128
_ROUNDING = 1e-6  # of sums of fractions
MAX_TOTAL_NAME_LENGTH = 4 * 1024**2
#: Of tables that runtimes are asked about: made once, for specs have thousands.
_ANY_FEATURES, _NO_CONSTRAINTS = (Feature(name="any", pooling_factor=1.0),), TableConstraints()


def check_spec(spec: SpecDocument, hardware: Hardware | None, base: str) -> Iterator[Issue]:
    """Yield every broken rule; ``base`` stands before every pointer."""
    yield from _check_cluster(spec, hardware, base)
    yield from _check_names(spec, base)
    for index, table in enumerate(spec.model.tables):
        yield from _check_table(table, spec, hardware, f"{base}/model/tables/{index}")
    yield from _check_groups(spec, base)


def check_memory(problem: Problem, base: str) -> tuple[Issue, ...]:
    """Return the tables whose weights alone exceed all memory of the cluster, with the numbers.

    Such a table is a mistake in the spec (rows mistyped, hosts forgotten). Whatever fits the
    bare cluster but not what reservations and other tables leave is an INFEASIBLE solve.
    """
    cluster = problem.cluster
    device = cluster.device_tier
    of_tier = cluster.bytes_by_rank().sum(axis=0).tolist()
    tiers_of: dict[frozenset[Kernel] | None, list[Tier]] = {}
    issues = []
    for index, table in enumerate(problem.tables):
        named = table.constraints.compute_kernels
        if named not in tiers_of:
            kernels = (HOST_KERNELS if device is Tier.HBM else DEVICE_KERNELS) if named is None else named
            runtime = RUNTIMES[problem.runtime]
            tiers_of[named] = sorted({tier for kernel in kernels for tier in row_tiers(kernel, cluster, runtime)})
        tiers = tiers_of[named]
        available = sum(of_tier[tier] for tier in tiers)
        smallest = min(
            (DATA_TYPES[name] for name in table.constraints.data_types or ()),
            default=table.data_type,
            key=lambda data_type: data_type.element_bytes,
        )
        needed = table.num_embeddings * smallest.row_bytes(table.embedding_dim)
        if needed > available:
            issues.append(
                rule(
                    f"{base}/model/tables/{index}",
                    f"table {quoted(table.name)} has {format_bytes(needed)} of weights and the whole cluster has "
                    f"{format_bytes(available)} of {' and '.join(tier.label for tier in tiers)}",
                    f"{_more_ranks(needed, available, problem.world_size)}use a narrower data_type, or check "
                    "num_embeddings",
                    code="table-too-large",
                )
            )
    return tuple(issues)


def _more_ranks(needed: float, available: float, world_size: int) -> str:
    """Return the advice to add ranks, with their number, where ranks have any room at all."""
    return f"plan for at least {math.ceil(needed * world_size / available)} ranks, " if available > 0 else ""


def _check_cluster(spec: SpecDocument, hardware: Hardware | None, base: str) -> Iterator[Issue]:
    if hardware is None:
        return
    yield from _check_scm(spec, hardware, base)
    yield from _check_devices(spec, hardware, base)
    per_host = spec.hardware.ranks_per_host or hardware.ranks_per_host
    if per_host > hardware.ranks_per_host and hardware.family != "custom":
        yield rule(
            f"{base}/hardware/ranks_per_host",
            f"{per_host} ranks per host, and the profile has {hardware.ranks_per_host}",
            f"use at most {hardware.ranks_per_host} and more hosts, or the profile custom",
        )
    world_size = spec.hardware.num_hosts * per_host
    yield from check_sparsecore(spec, world_size, base)
    if world_size > MAX_RANKS:
        yield rule(
            f"{base}/hardware/num_hosts",
            f"{spec.hardware.num_hosts} hosts x {per_host} ranks are {world_size} ranks",
            f"plan for at most {MAX_RANKS} ranks",
        )
    overrides = spec.hardware.overrides
    for name in type(overrides).model_fields:
        by_rank = getattr(overrides, name)
        if by_rank is not None and len(by_rank) != world_size:
            yield rule(
                f"{base}/hardware/overrides/{name}",
                f"{len(by_rank)} numbers for {world_size} ranks",
                "give one number for every rank",
            )
    if overrides.hbm_bytes_by_rank is None and not any(_number(hardware, name) for name in ("hbm_bytes", "ddr_bytes")):
        yield rule(
            f"{base}/hardware/overrides", "no rank has any memory", "give hbm_bytes, or ddr_bytes for hosts alone"
        )


def _check_devices(spec: SpecDocument, hardware: Hardware, base: str) -> Iterator[Issue]:
    """Devices that the runtime does not run on."""
    families = RUNTIMES[spec.runtime].device_families
    if families is not None and hardware.family not in families:
        yield rule(
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
            yield rule(
                f"{base}/hardware/overrides/{name}",
                f"every rank has {format_bytes(_number(hardware, 'scm_bytes'))} of scm, and how fast they are {what} is"
                " not known",
                f"give {name}, or set scm_bytes to 0",
            )
    if not RUNTIMES[spec.runtime].keeps_rows_in_scm or spec.cost_model not in cost_model_names():
        return
    if make_cost_model(spec.cost_model).ledger == "torchrec":  # which counts no such memory
        yield rule(
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
        where = f"{base}/model/tables/{index}"
        total += len(table.name) + sum(len(feature.name) for feature in table.features or ())
        if table.name in first:
            yield rule(
                f"{where}/name",
                f"table {quoted(table.name)} is also table number {first[table.name]} (counted from 0)",
                "give every table its own name",
                code="duplicate-name",
            )
        first.setdefault(table.name, index)
        seen: set[str] = set()
        for number, feature in enumerate(table.features or ()):
            if feature.name in seen:
                yield rule(
                    f"{where}/features/{number}/name",
                    f"feature {quoted(feature.name)} stands twice in this table",
                    "name every feature of a table once",
                    code="duplicate-name",
                )
            seen.add(feature.name)
    if total > MAX_TOTAL_NAME_LENGTH:
        yield rule(
            f"{base}/model/tables",
            f"names are {total} characters in all, and at most {MAX_TOTAL_NAME_LENGTH} are taken",
            "shorten the names",
        )


def _check_table(table: TableSpec, spec: SpecDocument, hardware: Hardware | None, where: str) -> Iterator[Issue]:
    yield from _check_runtime(table, RUNTIMES[spec.runtime], where)
    if table.optimizer != "none" and not DATA_TYPES[table.data_type].trainable:
        yield rule(
            f"{where}/optimizer",
            f"{table.data_type} weights cannot be trained with {table.optimizer}",
            "use the optimizer none, or weights of fp32, fp16 or bf16",
        )
    if table.access is not None:
        yield from _check_access(table.access, table.num_embeddings, f"{where}/access")
    yield from _check_sites(table, spec, hardware, where)


def _check_runtime(table: TableSpec, runtime: Runtime, where: str) -> Iterator[Issue]:
    """A table that the runtime runs under no scheme at all, and the width at which it would."""
    reason = _refusal(table, runtime, table.embedding_dim)
    if reason is None:
        return
    widest = min(table.embedding_dim + MAX_PADDING, MAX_COLUMNS)
    wider = range(table.embedding_dim + 1, widest + 1)
    padded = next((width for width in wider if _refusal(table, runtime, width) is None), None)
    if padded is None:
        yield rule(where, f"the runtime {runtime.name} cannot run this table: {reason}", "change the table")
    else:
        message = f"the runtime {runtime.name} cannot run {table.embedding_dim} columns: {reason}"
        yield rule(f"{where}/embedding_dim", message, f"pad the table to {padded} columns")


def _refusal(table: TableSpec, runtime: Runtime, num_columns: int) -> str | None:
    """Return why the runtime refuses every scheme of a table of this width, or ``None``."""
    data_type = DATA_TYPES[table.data_type]
    probe = Table(
        name=table.name,
        num_embeddings=table.num_embeddings,
        embedding_dim=num_columns,
        features=_ANY_FEATURES,
        pooling=table.pooling,
        is_weighted=table.is_weighted,
        data_type=data_type,
        optimizer=OPTIMIZERS[table.optimizer if data_type.trainable else "none"],
        constraints=_NO_CONSTRAINTS,
    )
    first = None
    for scheme in Scheme:
        reason = runtime.refusal(probe, scheme)
        if reason is None:  # which is so for nearly every table
            return None
        first = first or reason
    return first


def _check_sites(table: TableSpec, spec: SpecDocument, hardware: Hardware | None, where: str) -> Iterator[Issue]:
    constraints, num_hosts = table.constraints, spec.hardware.num_hosts
    per_host = spec.hardware.ranks_per_host or (hardware.ranks_per_host if hardware else 0)
    for name, indices, count in (
        ("ranks", constraints.ranks, num_hosts * per_host),
        ("hosts", constraints.hosts, num_hosts),
    ):
        if indices is not None and count and max(indices) >= count:
            yield rule(
                f"{where}/constraints/{name}",
                f"{max(indices)} is out of range: the cluster has {name} 0 to {count - 1}",
                f"use numbers below {count}",
            )
    if constraints.ranks is not None and constraints.hosts is not None and per_host:
        hosts = set(constraints.hosts)
        if all(rank // per_host not in hosts for rank in constraints.ranks):
            yield rule(
                f"{where}/constraints",
                "none of the ranks is on one of the hosts",
                "give ranks or hosts, or ranks that are on these hosts",
            )
    types = constraints.data_types or ()
    if types and table.optimizer != "none" and not any(DATA_TYPES[name].trainable for name in types):
        yield rule(
            f"{where}/constraints/data_types",
            f"no kernel trains weights of {', '.join(types)} with {table.optimizer}",
            'list a type that can be trained (fp32, fp16, bf16), or set optimizer "none" for inference',
        )
    if constraints.hot_row_fractions is not None and not RUNTIMES[spec.runtime].splits_rows_by_heat:
        yield rule(
            f"{where}/constraints/hot_row_fractions",
            f"the runtime {spec.runtime} does not split tables by heat",
            'use the runtime "generic", or leave hot_row_fractions out',
        )
    if constraints.min_partition is not None and constraints.min_partition > table.embedding_dim:
        yield rule(
            f"{where}/constraints/min_partition",
            f"{constraints.min_partition} columns are more than the table's {table.embedding_dim}",
            f"use at most {table.embedding_dim}",
        )


def _check_access(access: AccessSpec, num_embeddings: int, where: str) -> Iterator[Issue]:
    try:
        if access.reuse_histogram is not None:
            if sum(access.reuse_histogram) > num_embeddings * (1 + _ROUNDING):
                raise ValueError(
                    f"{sum(access.reuse_histogram):.10g} distinct rows in one batch, and the table has {num_embeddings}"
                )
            ReuseHistogram(distinct_rows=tuple(access.reuse_histogram))
        if access.access_cdf is not None:
            AccessCdf(points=tuple((x, y) for x, y in access.access_cdf))
        if access.miss_ratio_curve is not None:
            MissRatioCurve(points=tuple((x, y) for x, y in access.miss_ratio_curve))
    except ValueError as error:
        name = next(iter(access.model_dump(exclude_none=True)))
        yield rule(f"{where}/{name}", str(error), "see the field's description")


def _check_groups(spec: SpecDocument, base: str) -> Iterator[Issue]:
    known = {table.name for table in spec.model.tables}
    group_of: dict[str, int] = {}
    for kind in ("same_rank", "apart"):
        for number, group in enumerate(getattr(spec.constraints, kind)):
            where = f"{base}/constraints/{kind}/{number}"
            for position, name in enumerate(group):
                if name not in known:
                    yield rule(f"{where}/{position}", f"no table {quoted(name)}", "name a table of the spec")
            for name, count in Counter(group).items():
                if count > 1:
                    yield rule(where, f"{quoted(name)} stands {count} times in the group", "name it once")
            if kind == "same_rank":
                for name in group:
                    if group_of.setdefault(name, number) != number:
                        text = f"{quoted(name)} is also in group {group_of[name]}"
                        yield rule(where, text, "merge the two groups")
                continue
            together = Counter(group_of[name] for name in set(group) if name in group_of)
            for other, count in together.items():
                if count > 1:
                    yield rule(
                        where,
                        f"{count} of these tables must share a rank by same_rank group {other}",
                        "take them out of one of the two groups",
                    )


def rule(where: str, message: str, hint: str, *, code: str = "invalid-value") -> Issue:
    """Return a broken rule."""
    return Issue(code=code, pointer=where, message=message, hint=hint)
