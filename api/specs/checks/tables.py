"""Tables of a spec become tables of the domain, or it is said what is wrong with them."""

from collections.abc import Iterator

from api.schemas.spec import SpecDocument
from api.schemas.table import AccessSpec, TableSpec
from api.specs.checks.issue import issue
from api.specs.to_domain.table import access_of, table_of
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import Scheme
from planner.domain.problem.access import AccessStatistics
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.table import MAX_COLUMNS, Feature, Table, TableConstraints
from planner.errors import Issue
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES

#: A table that a runtime cannot run is offered to it again with up to so many columns more.
MAX_PADDING = 128
_ROUNDING = 1e-6  # of sums of fractions
_SCHEMES = tuple(Scheme)
#: Of tables that runtimes are asked about whatever the user allows.
_ANY_FEATURES, _NO_CONSTRAINTS = (Feature(name="any", pooling_factor=1.0),), TableConstraints()


def check_tables(spec: SpecDocument, hardware: Hardware | None, base: str) -> tuple[tuple[Table, ...], list[Issue]]:
    """Return the tables of a spec in its order, those without fault, and every rule that one breaks by itself."""
    runtime, tables, issues = RUNTIMES[spec.runtime], list[Table](), list[Issue]()
    for index, written in enumerate(spec.model.tables):
        table, found = _checked(written, spec, hardware, f"{base}/model/tables/{index}")
        if table is None or not _runs(table, runtime):
            found = [*_check_runtime(written, runtime, f"{base}/model/tables/{index}"), *found]
        if table is None or found:
            issues.extend(found)
        else:
            tables.append(table)
    return tuple(tables), issues


def _checked(
    written: TableSpec, spec: SpecDocument, hardware: Hardware | None, where: str
) -> tuple[Table | None, list[Issue]]:
    """Return the table, or what is wrong with it on any runtime."""
    issues: list[Issue] = []
    if written.optimizer != "none" and not DATA_TYPES[written.data_type].trainable:
        issues.append(
            issue(
                f"{where}/optimizer",
                f"{written.data_type} weights cannot be trained with {written.optimizer}",
                "use the optimizer none, or weights of fp32, fp16 or bf16",
            )
        )
    access: AccessStatistics | None = None
    if written.access is not None:
        try:
            access = _access(written.access, written.num_embeddings)
        except ValueError as error:
            name = next(iter(written.access.model_dump(exclude_none=True)))
            issues.append(issue(f"{where}/access/{name}", str(error), "see the field's description"))
    if written.constraints.model_fields_set:
        issues.extend(_check_constraints(written, spec, hardware, where))
    return (None, issues) if issues else (table_of(written, access), issues)


def _access(access: AccessSpec, num_embeddings: int) -> AccessStatistics:
    """Return what is known of a table's accesses; raises ``ValueError`` for what cannot be."""
    if access.reuse_histogram is not None and sum(access.reuse_histogram) > num_embeddings * (1 + _ROUNDING):
        raise ValueError(
            f"{sum(access.reuse_histogram):.10g} distinct rows in one batch, and the table has {num_embeddings}"
        )
    return access_of(access)


def _runs(table: Table, runtime: Runtime) -> bool:
    """Whether the runtime runs any scheme of a table, within the user's constraints."""
    for scheme in _SCHEMES:  # noqa: SIM110, for specs have thousands of tables and the first scheme will do
        if runtime.scheme_issue(table, scheme) is None:
            return True
    return False


def _check_runtime(table: TableSpec, runtime: Runtime, where: str) -> Iterator[Issue]:
    """A table that the runtime runs under no scheme at all, and the width at which it would."""
    reason = _scheme_issue(table, runtime, table.embedding_dim)
    if reason is None:
        return
    widest = min(table.embedding_dim + MAX_PADDING, MAX_COLUMNS)
    wider = range(table.embedding_dim + 1, widest + 1)
    padded = next((width for width in wider if _scheme_issue(table, runtime, width) is None), None)
    if padded is None:
        yield issue(where, f"the runtime {runtime.name} cannot run this table: {reason}", "change the table")
    else:
        message = f"the runtime {runtime.name} cannot run {table.embedding_dim} columns: {reason}"
        yield issue(f"{where}/embedding_dim", message, f"pad the table to {padded} columns")


def _scheme_issue(table: TableSpec, runtime: Runtime, num_columns: int) -> str | None:
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
    for scheme in _SCHEMES:
        reason = runtime.scheme_issue(probe, scheme)
        if reason is None:
            return None
        first = first or reason
    return first


def _check_constraints(table: TableSpec, spec: SpecDocument, hardware: Hardware | None, where: str) -> Iterator[Issue]:
    constraints, num_hosts = table.constraints, spec.hardware.num_hosts
    per_host = spec.hardware.ranks_per_host or (hardware.ranks_per_host if hardware else 0)
    for name, indices, count in (
        ("ranks", constraints.ranks, num_hosts * per_host),
        ("hosts", constraints.hosts, num_hosts),
    ):
        if indices is not None and count and max(indices) >= count:
            yield issue(
                f"{where}/constraints/{name}",
                f"{max(indices)} is out of range: the cluster has {name} 0 to {count - 1}",
                f"use numbers below {count}",
            )
    if constraints.ranks is not None and constraints.hosts is not None and per_host:
        hosts = set(constraints.hosts)
        if all(rank // per_host not in hosts for rank in constraints.ranks):
            yield issue(
                f"{where}/constraints",
                "none of the ranks is on one of the hosts",
                "give ranks or hosts, or ranks that are on these hosts",
            )
    types = constraints.data_types or ()
    if types and table.optimizer != "none" and not any(DATA_TYPES[name].trainable for name in types):
        yield issue(
            f"{where}/constraints/data_types",
            f"no kernel trains weights of {', '.join(types)} with {table.optimizer}",
            'list a type that can be trained (fp32, fp16, bf16), or set optimizer "none" for inference',
        )
    if constraints.hot_row_fractions is not None and not RUNTIMES[spec.runtime].splits_off_hot_rows:
        yield issue(
            f"{where}/constraints/hot_row_fractions",
            f"the runtime {spec.runtime} does not split tables by heat",
            'use the runtime "generic", or leave hot_row_fractions out',
        )
    if constraints.min_partition is not None and constraints.min_partition > table.embedding_dim:
        yield issue(
            f"{where}/constraints/min_partition",
            f"{constraints.min_partition} columns are more than the table's {table.embedding_dim}",
            f"use at most {table.embedding_dim}",
        )
