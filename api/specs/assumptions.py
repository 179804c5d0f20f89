"""What the answer assumed: defaults that were filled in, and numbers with their evidence."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from pydantic import BaseModel

from api.schemas.spec import SpecDocument
from api.schemas.table import TableSpec
from api.specs.input.json import quoted
from api.specs.to_domain.checkpoint import checkpoint_assumptions
from cost_models.analytic.hash_tables import SOURCE as HASH_TABLE_SOURCE
from cost_models.text.number_text import counted, digits_text
from cost_models.vocabulary import Scheme
from planner.domain.plan.plan import Assumption
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.geometry import DEFAULT_MIN_PARTITION

_NAMES_SHOWN = 10
#: Fields whose default is "nothing given", which assumes nothing.
_SILENT = frozenset(
    {
        "name",
        "schema_version",
        "previous_plan",
        "checkpoint_plan",
        "collective_laws",
        "pod_size",
        "checkpoint",
        "serving",
        "kv_cache",
        "batch_size_per_rank",
        "requests_per_second",
        "p99_seconds",
        "plan",
        "digest",
        "max_moved_bytes",
        "statistics",
        "cache_load_factors",
        "data_types",
        "forward_flops_per_sample",
        "layers",
        "compute_dtype",
        "gradient_dtype",
        "count_starts",
        "replica_groups",
        "warm_start",
        "cutoff_seconds",
        "use_index_dedup",
    }
)
#: Fields of tables whose defaults are reported.
_TABLE_DEFAULTS = ("data_type", "pooling", "is_weighted", "optimizer", "module_path", "access")
_COLUMN_SCHEMES = frozenset(scheme for scheme in Scheme if scheme.facts.cuts_columns)
_LEFT_TO_MODEL = {
    "roofline": "left to the cost model: fp32",
    "serving": "left to the cost model: fp32",
    "torchrec": "left to the cost model: the type of each table",
}


def assumptions_of(spec: SpecDocument, problem: Problem) -> tuple[Assumption, ...]:
    """Return every default that was filled in and every hardware number, with its evidence."""
    return (
        *_defaults(spec),
        *checkpoint_assumptions(spec.checkpoint),
        *_table_defaults(spec.model.tables),
        *_narrowest_columns(problem),
        *_hardware(spec, problem),
        *_hash_tables(problem),
        *_notes(problem),
    )


def prices_caches_alone(table: TableSpec) -> bool:
    """Whether the statistics of a table are silent on distinct rows: a miss-ratio curve is about caches."""
    return table.access is not None and table.access.miss_ratio_curve is not None


def shown_names(names: list[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(quoted(name) for name in names[:_NAMES_SHOWN]) + more


def _defaults(spec: SpecDocument) -> Iterator[Assumption]:
    """Defaults of single fields, outside of tables."""
    sections: tuple[tuple[str, BaseModel], ...] = (
        ("", spec),
        ("model.", spec.model),
        ("model.dense.", spec.model.dense),
        ("hardware.", spec.hardware),
        ("constraints.", spec.constraints),
        ("solver.", spec.solver),
        *([] if spec.previous_plan is None else [("previous_plan.", spec.previous_plan)]),
        *([] if spec.checkpoint_plan is None else [("checkpoint_plan.", spec.checkpoint_plan)]),
        *([] if spec.hardware.replica_groups is None else [("hardware.replica_groups.", spec.hardware.replica_groups)]),
        *([] if spec.serving is None else [("serving.", spec.serving)]),
    )
    for prefix, section in sections:
        for name in type(section).model_fields:
            value = getattr(section, name)
            if name in section.model_fields_set and not (name.endswith("dtype") and value is None):
                continue
            if name in _SILENT or isinstance(value, BaseModel | list):
                continue
            if name.endswith("dtype"):
                text = _LEFT_TO_MODEL.get(spec.cost_model, "left to the cost model")
            elif name in ("forward_seconds", "backward_seconds"):
                if spec.model.dense.compute_dtype is not None or spec.serving is not None:
                    continue  # computed from operations, or nothing is trained
                text = "not given: nothing is hidden under dense compute"
            elif name == "backward_flops_per_sample":
                if spec.model.dense.compute_dtype is None:
                    continue
                text = "twice those forward"
            elif name == "parameter_bytes":
                text = "0" if spec.model.dense.layers is None else "4 bytes for each weight and bias of the layers"
            elif name == "reserved_collective_bytes":
                text = "not given: the margin holds communication buffers"
            elif name == "ranks_per_host":
                text = "all ranks of the profile"
            elif name == "work_limit_seconds":
                if not spec.solver.reproducible:
                    continue
                text = "as many seconds of work as time_limit_seconds"
            else:
                text = _text(value)
            yield Assumption(subject=prefix + name, value=text, evidence="default", source="default of the spec")


def _table_defaults(tables: list[TableSpec]) -> Iterator[Assumption]:
    """Defaults of tables, one line for each field, with the number of tables, and curves that price caches alone."""
    given = Counter(chain.from_iterable(table.model_fields_set for table in tables))
    for_caches = sum(prices_caches_alone(table) for table in tables)
    if for_caches:
        yield Assumption(
            subject="model.tables.access.miss_ratio_curve",
            value="prices caches alone: every id may be a different row",
            evidence="note",
            source=f"given for {for_caches} of {counted(len(tables), 'table')}",
        )
    texts = {"access": "unknown: every id may be a different row", "module_path": "not given"}
    for name in _TABLE_DEFAULTS:
        count = len(tables) - given[name]
        if count == 0:
            continue
        text = texts.get(name) or _text(TableSpec.model_fields[name].default)
        yield Assumption(
            subject=f"model.tables.{name}",
            value=text,
            evidence="default",
            source=f"default of the spec, for {count} of {counted(len(tables), 'table')}",
        )


def _narrowest_columns(problem: Problem) -> Iterator[Assumption]:
    """The least width of column pieces, where tables may be cut by columns and do not say."""
    runtime = RUNTIMES[problem.runtime]
    count = sum(
        table.constraints.min_partition is None
        and any(runtime.scheme_issue(table, scheme) is None for scheme in _column_schemes(table))
        for table in problem.tables
    )
    if count:
        yield Assumption(
            subject="model.tables.constraints.min_partition",
            value=f"{DEFAULT_MIN_PARTITION} columns",
            evidence="default",
            source=f"default of the planner, for {count} of {len(problem.tables)} tables that columns may cut",
        )


def _column_schemes(table: Table) -> frozenset[Scheme]:
    """Schemes that would cut the table by columns, were it only for its constraints."""
    if table.constraints.pinned is not None:
        return frozenset()
    allowed = table.constraints.sharding_types
    wide_enough = table.embedding_dim >= 2 * DEFAULT_MIN_PARTITION
    return (_COLUMN_SCHEMES if allowed is None else _COLUMN_SCHEMES & allowed) if wide_enough else frozenset()


def _hardware(spec: SpecDocument, problem: Problem) -> Iterator[Assumption]:
    for name, quantity in sorted(problem.cluster.hardware.numbers.items()):
        yield Assumption(
            subject=f"hardware.{name}",
            value=f"{digits_text(quantity.value)} {quantity.unit}",
            evidence=quantity.evidence.label,
            source=quantity.basis,
        )
    hardware = problem.cluster.hardware
    laws = {f"{name}_law": law.basis for name, law in hardware.domain_laws.items()}
    laws |= {f"{name}_hosts_law": law.basis for name, law in hardware.hosts_laws.items()}
    for name, basis in sorted(laws.items()):
        yield Assumption(
            subject=f"hardware.{name}",
            value=f"{counted(basis.num_rows, 'row')} of {basis.ranks[0]} to {basis.ranks[-1]} ranks, {basis.library}",
            evidence=basis.evidence.label,
            source=basis.source,
        )
    overrides = spec.hardware.overrides
    for name, unit in (("hbm_bytes_by_rank", "bytes"), ("relative_speed_by_rank", "of the profile's speed")):
        by_rank = getattr(overrides, name)
        if by_rank is not None:
            yield Assumption(
                subject=f"hardware.{name}",
                value=f"{digits_text(min(by_rank))} to {digits_text(max(by_rank))} {unit}",
                evidence="given",
                source="hardware.overrides of the spec",
            )


def _hash_tables(problem: Problem) -> Iterator[Assumption]:
    """Where the seconds of hash tables come from that are found by key."""
    count = sum(table.hash_table is not None and table.hash_table.mode == "dynamicemb" for table in problem.tables)
    if count:
        yield Assumption(
            subject="model.tables.hash_table",
            value=f"keys and rows in host memory of {counted(count, 'hash table')} by laws of 19 launches on one H100",
            evidence="estimated",
            source=HASH_TABLE_SOURCE,
        )


def _notes(problem: Problem) -> Iterator[Assumption]:
    names = [table.name for table in problem.tables if table.ids_per_sample == 0]
    if names:
        yield Assumption(
            subject="model.tables",
            value=f"{len(names)} never looked up: {shown_names(names)}",
            evidence="note",
            source="pooling factors of the spec; they take memory, and their empty bags are exchanged",
        )


def _text(value: object) -> str:
    """Return a default as a spec says it."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return str(value).lower()
    return digits_text(value) if isinstance(value, float) else str(value)
