"""The tables of a spec as values of the domain: those that have a value, and what is wrong with the others."""

from dataclasses import replace

from api.schemas.hash_table import HashTableSpec
from api.schemas.table import AccessSpec, TableConstraintsSpec, TableSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.access import (
    AccessCdf,
    AccessStatistics,
    IdOrder,
    MissRatioCurve,
    ReuseHistogram,
    RowCdf,
    ZipfAccess,
)
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.hash_table import DEFAULT_MAX_PROBE, HASH_TABLE_MODES, HashTable
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.table import MAX_COLUMNS, Feature, Table, TableConstraints
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES

_ROUNDING = 1e-6  # of sums of fractions
#: Of most tables: made once, for specs have thousands.
_NO_CONSTRAINTS = TableConstraints()
#: For a table that a runtime cannot run, widths of up to so many columns more are tried.
_MAX_PADDING = 128
_SCHEMES = tuple(Scheme)
#: Of tables that runtimes are asked about whatever the user allows.
_ANY_FEATURES = (Feature(name="any", pooling_factor=1.0),)


def tables_of(state: SpecState, issues: IssueCollector) -> dict[str, Table]:
    """Return the tables by pointer; without those that have an issue, or that the runtime cannot run."""
    runtime, is_runtime_known = RUNTIMES[state.spec.runtime], issues.is_sound("/runtime")
    tables: dict[str, Table] = {}
    for where, written in state.written_tables():
        access = None if written.access is None else _access(written, written.access, where, issues)
        ids = "hashed" if written.hash_table is not None else _ids(written.access, where, issues)
        table = _table_of(state.table_name(where, written), written, access, ids) if issues.is_sound(where) else None
        if is_runtime_known and (table is None or not _runs(table, runtime)):
            _check_runtime(written, runtime, where, issues)
        if table is not None and issues.is_sound(where):
            tables[where] = table
    return tables


def _access(table: TableSpec, access: AccessSpec, where: str, issues: IssueCollector) -> AccessStatistics | None:
    """Return what is known of a table's accesses, or report why it cannot be."""
    histogram = access.reuse_histogram
    try:
        if histogram is not None and sum(histogram) > table.num_rows * (1 + _ROUNDING):
            raise ValueError(f"{sum(histogram):.10g} distinct rows in one batch, and the table has {table.num_rows}")
        return _access_of(access)
    except ValueError as error:
        name = next(name for name in type(access).model_fields if getattr(access, name) is not None)
        issues.report(f"{where}/access/{name}", str(error), "see the field's description")
        return None


def _ids(access: AccessSpec | None, where: str, issues: IssueCollector) -> IdOrder | RowCdf:
    """Return what is known of the numbers of the rows that are looked up, or report what is wrong with it."""
    if access is None or access.row_cdf is None:
        return "unknown" if access is None or access.ids is None else access.ids
    found, name = None, "row_cdf"
    try:
        found = RowCdf(lookups=_points(access.row_cdf))
        if access.distinct_row_cdf is not None:
            name = "distinct_row_cdf"
            found = replace(found, distinct=_points(access.distinct_row_cdf))
    except ValueError as error:
        issues.report(f"{where}/access/{name}", str(error), "see the field's description")
    return "unknown" if found is None else found


def _table_of(name: str, spec: TableSpec, access: AccessStatistics | None, ids: IdOrder | RowCdf) -> Table:
    hash_table = None if spec.hash_table is None else _hash_table(spec, spec.hash_table)
    return Table(
        name=name,
        num_embeddings=spec.num_rows,
        embedding_dim=spec.embedding_dim,
        features=_features(spec),
        data_type=DATA_TYPES[spec.data_type],
        pooling=spec.pooling,
        is_weighted=spec.is_weighted,
        optimizer=OPTIMIZERS[spec.optimizer],
        access=access,
        ids=ids,
        hash_table=hash_table,
        constraints=_constraints(spec.constraints),
        module_path=spec.module_path,
    )


def _hash_table(table: TableSpec, spec: HashTableSpec) -> HashTable:
    has_probes = "max_probe" in HASH_TABLE_MODES[spec.mode].fields
    return HashTable(
        mode=spec.mode,
        eviction=spec.eviction,
        expected_rows=table.num_embeddings,
        eviction_interval=spec.eviction_interval,
        bucket_size=spec.bucket_size,
        initial_capacity_per_rank=spec.initial_capacity_per_rank,
        max_probe=spec.max_probe or (DEFAULT_MAX_PROBE if has_probes else None),
        metadata_bytes_per_slot=spec.metadata_bytes_per_slot,
    )


def _features(spec: TableSpec) -> tuple[Feature, ...]:
    if spec.features is None:
        return (Feature(name=spec.name, pooling_factor=spec.pooling_factor or 0.0),)
    return tuple(
        Feature(name=feature.name, pooling_factor=feature.pooling_factor, num_poolings=feature.num_poolings)
        for feature in spec.features
    )


def _access_of(spec: AccessSpec) -> AccessStatistics | None:
    """Return the statistics that stand in a spec, if any do; raises ``ValueError`` if they are none."""
    if spec.zipf_alpha is not None:
        return ZipfAccess(alpha=spec.zipf_alpha)
    if spec.reuse_histogram is not None:
        return ReuseHistogram(distinct_rows=tuple(spec.reuse_histogram))
    if spec.access_cdf is not None:
        return AccessCdf(points=_points(spec.access_cdf), counted=_points(spec.distinct_rows or []))
    return None if spec.miss_ratio_curve is None else MissRatioCurve(points=_points(spec.miss_ratio_curve))


def _points(points: list[list[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((first, second) for first, second in points)


def _constraints(spec: TableConstraintsSpec) -> TableConstraints:
    if not spec.model_fields_set:
        return _NO_CONSTRAINTS
    return TableConstraints(
        sharding_types=None
        if spec.sharding_types is None
        else frozenset(Scheme.from_label(label) for label in spec.sharding_types),
        compute_kernels=None
        if spec.compute_kernels is None
        else frozenset(Kernel.from_label(label) for label in spec.compute_kernels),
        ranks=None if spec.ranks is None else frozenset(spec.ranks),
        hosts=None if spec.hosts is None else frozenset(spec.hosts),
        min_partition=spec.min_partition,
        cache_load_factors=None if spec.cache_load_factors is None else tuple(sorted(set(spec.cache_load_factors))),
        hot_row_fractions=None if spec.hot_row_fractions is None else tuple(sorted(set(spec.hot_row_fractions))),
        data_types=None if spec.data_types is None else tuple(sorted(set(spec.data_types))),
    )


def _runs(table: Table, runtime: Runtime) -> bool:
    """Whether the runtime runs any scheme of a table, within the user's constraints."""
    for scheme in _SCHEMES:  # noqa: SIM110, for specs have thousands of tables and the first scheme will do
        if runtime.scheme_issue(table, scheme) is None:
            return True
    return False


def _check_runtime(table: TableSpec, runtime: Runtime, where: str, issues: IssueCollector) -> None:
    """Report a table that the runtime runs under no scheme at all, whatever the user allows."""
    reason = _scheme_issue(table, runtime, table.embedding_dim)
    if reason is None:
        return
    read = [
        "name",
        "data_type",
        "pooling",
        "is_weighted",
        *(["optimizer"] if DATA_TYPES[table.data_type].trainable else []),
    ]
    reads = tuple(f"{where}/{name}" for name in read)
    widest = min(table.embedding_dim + _MAX_PADDING, MAX_COLUMNS)
    wider = range(table.embedding_dim + 1, widest + 1)
    padded = next((width for width in wider if _scheme_issue(table, runtime, width) is None), None)
    if padded is None:
        message = f"the runtime {runtime.name} cannot run this table: {reason}"
        issues.report(where, message, "change the table", reads=reads)
    else:
        message = f"the runtime {runtime.name} cannot run {table.embedding_dim} columns: {reason}"
        issues.report(f"{where}/embedding_dim", message, f"pad the table to {padded} columns", reads=reads)


def _scheme_issue(table: TableSpec, runtime: Runtime, num_columns: int) -> str | None:
    """Return why the runtime rejects every scheme of a table of this width, or ``None``."""
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
