"""Hash tables: whether the runtime and the cluster have what a spec asks for, and whether its numbers go together."""

from collections import defaultdict
from collections.abc import Iterator

from api.schemas.hash_table import HashTableSpec
from api.schemas.table import TableSpec
from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.text.number_text import counted
from planner.domain.problem.hash_table import HASH_TABLE_MODES
from planner.options.runtimes.dynamicemb.operators import DEFAULT_BUCKET_SIZE
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.blocks import has_empty_block

#: Fields of a ``hash_table`` that are of some modes alone.
_OF_MODES = ("eviction_interval", "bucket_size", "initial_capacity_per_rank", "max_probe", "metadata_bytes_per_slot")
_WORD_BYTES = 8
#: Rows of a spec's access that are numbered, which those of a hash table are not.
_BY_ROW = ("row_cdf", "distinct_row_cdf")


def check_hash_tables(state: SpecState, issues: IssueCollector) -> None:
    """Report every rule of the document that a hash table breaks."""
    fills_modules = False
    for where, table in state.written_tables():
        if table.hash_table is None:
            continue
        fills_modules = fills_modules or HASH_TABLE_MODES[table.hash_table.mode].fills_modules
        _check_mode(state, table.hash_table, f"{where}/hash_table", issues)
        _check_capacity(table, table.hash_table, where, issues)
        _check_blocks(state, table, table.hash_table, where, issues)
        _check_access(table, where, issues)
        if state.spec.serving is not None:
            message = "hash tables of a host that serves are not planned: no public number prices a request to them"
            issues.report(f"{where}/hash_table", message, "leave hash_table out", reads=("/serving",))
    if fills_modules:
        _check_modules(state, issues)


def check_hash_tables_of_cluster(state: SpecState, issues: IssueCollector) -> None:
    """Report hash tables that the runtime cannot hold on the cluster."""
    if state.cluster is None or not issues.is_sound("/runtime"):
        return
    runtime = RUNTIMES[state.spec.runtime]
    for where, table in state.tables.items():
        if found := runtime.hash_table_issue(table, state.cluster):
            reason, hint = found
            message = f"the runtime {runtime.name} cannot hold this hash table: {reason}"
            issues.report(f"{where}/hash_table", message, hint, reads=(*state.rank_fields, f"{where}/optimizer"))
        if table.hash_table is not None and table.embedding_dim > runtime.max_columns:
            message = (
                f"{table.embedding_dim} columns, and slots are cut by rows alone, into shards of at most"
                f" {runtime.max_columns} columns"
            )
            issues.report(f"{where}/embedding_dim", message, f"use at most {runtime.max_columns}")


def _check_mode(state: SpecState, spec: HashTableSpec, where: str, issues: IssueCollector) -> None:
    """Report a mode that the runtime lacks, an eviction that the mode lacks, and fields of other modes."""
    runtime, mode = state.spec.runtime, HASH_TABLE_MODES[spec.mode]
    if issues.is_sound("/runtime") and spec.mode not in (modes := RUNTIMES[runtime].hash_table_modes):
        others = " or ".join(name for name, one in RUNTIMES.items() if spec.mode in one.hash_table_modes)
        has = f"it has {', '.join(sorted(modes))}" if modes else "it has no hash tables"
        hint = f"use the runtime {others}"
        hint += f", or one of {', '.join(sorted(modes))}" if modes else ", or leave hash_table out"
        issues.report(f"{where}/mode", f"the runtime {runtime} has no {spec.mode}: {has}", hint, reads=("/runtime",))
    if spec.eviction not in mode.evictions:
        issues.report(
            f"{where}/eviction",
            f"{spec.mode} has no eviction {spec.eviction}",
            f"use {', '.join(mode.evictions)}",
            reads=(f"{where}/mode",),
        )
    for name in sorted(mode.required_fields):
        if getattr(spec, name) is None:
            issues.report(
                f"{where}/{name}", f"{spec.mode} needs {name}", "add it", code="missing-field", reads=(f"{where}/mode",)
            )
    for name in _OF_MODES:
        if getattr(spec, name) and name not in mode.fields:
            of = " and ".join(label for label, one in HASH_TABLE_MODES.items() if name in one.fields)
            message = f"{name} {getattr(spec, name)} is of {of}, and the mode is {spec.mode}"
            issues.report(f"{where}/{name}", message, "leave it out", reads=(f"{where}/mode",))
    if spec.metadata_bytes_per_slot % _WORD_BYTES:
        message = f"{spec.metadata_bytes_per_slot} bytes are no whole int64 numbers"
        issues.report(f"{where}/metadata_bytes_per_slot", message, f"use a multiple of {_WORD_BYTES}")


def _check_capacity(table: TableSpec, spec: HashTableSpec, where: str, issues: IssueCollector) -> None:
    if spec.capacity is not None and not HASH_TABLE_MODES[spec.mode].has_capacity:
        issues.report(
            f"{where}/hash_table/capacity",
            f"{counted(spec.capacity, 'slot')}, and tables of {spec.mode} grow with the ids that come",
            "leave it out, and give the ids that are expected as num_embeddings",
            reads=(f"{where}/hash_table/mode",),
        )
        return
    if spec.capacity is not None and spec.capacity < table.num_embeddings:
        issues.report(
            f"{where}/hash_table/capacity",
            f"{counted(spec.capacity, 'slot')} for {counted(table.num_embeddings, 'id')} that are expected to hold one",
            f"use at least {table.num_embeddings}, or expect fewer (num_embeddings)",
            reads=(f"{where}/num_embeddings",),
        )


def _check_blocks(state: SpecState, table: TableSpec, spec: HashTableSpec, where: str, issues: IssueCollector) -> None:
    """Report slots that do not make row blocks: every rank has some, and no bucket lies on two ranks."""
    ranks = state.num_ranks
    field = "hash_table/capacity" if spec.capacity is not None else "num_embeddings"
    slots = table.num_rows
    reads = (*state.rank_fields, f"{where}/{field}", f"{where}/hash_table/mode")
    if not ranks or not HASH_TABLE_MODES[spec.mode].is_on_all_ranks:
        return
    of_ranks = counted(ranks, "rank")
    mode = HASH_TABLE_MODES[spec.mode]
    if spec.bucket_size is not None and mode.rounds_up_buckets and spec.bucket_size > max(slots, DEFAULT_BUCKET_SIZE):
        message = f"a bucket of {counted(spec.bucket_size, 'slot')} for {counted(slots, 'slot')} of all ranks"
        hint = f"use at most {max(slots, DEFAULT_BUCKET_SIZE)}, or leave it out"
        issues.report(f"{where}/hash_table/bucket_size", message, hint, reads=reads)
        return
    if "bucket_size" not in mode.fields or mode.rounds_up_buckets:
        if ranks > 1 and has_empty_block(slots, ranks):
            message = f"{counted(slots, 'slot')} in blocks of {-(-slots // ranks)} leave one of {of_ranks} without any"
            hint = f"use at least {slots + -slots % ranks}"
            issues.report(f"{where}/{field}", message, hint, reads=reads)
        return
    if spec.bucket_size is None:
        if slots % ranks:
            message = f"{counted(slots, 'slot')} are no whole number of slots for each of {of_ranks}"
            issues.report(f"{where}/{field}", message, f"use {_multiple(slots, ranks)}", reads=reads)
        return
    pointer, reads = f"{where}/hash_table/bucket_size", (*reads, f"{where}/hash_table/bucket_size")
    if slots % spec.bucket_size:
        message = f"{counted(slots, 'slot')} are no whole number of buckets of {spec.bucket_size}"
        issues.report(pointer, message, f"use {field} {_multiple(slots, spec.bucket_size * ranks)}", reads=reads)
    elif (buckets := slots // spec.bucket_size) % ranks:
        message = f"{counted(buckets, 'bucket')} of {spec.bucket_size} slots are no whole number for each of {of_ranks}"
        way_out = f"use {field} {_multiple(slots, spec.bucket_size * ranks)}, or leave bucket_size out"
        issues.report(pointer, message, way_out, reads=reads)


def _multiple(number: int, of: int) -> int:
    """Return the least multiple that is no less than a number."""
    return number + -number % of


def _check_access(table: TableSpec, where: str, issues: IssueCollector) -> None:
    """Report statistics by row number: an id of a hash table has no fixed row."""
    access = table.access
    if access is None:
        return
    given = [name for name in _BY_ROW if getattr(access, name) is not None]
    given += ["ids"] if access.ids == "frequency_sorted" else []
    for name in given:
        message = "the rows of a hash table are slots that ids are given as they come, not row numbers of ids"
        issues.report(f"{where}/access/{name}", message, "leave it out", reads=(f"{where}/hash_table",))


def _check_modules(state: SpecState, issues: IssueCollector) -> None:
    """Report modules of which only some tables are hash tables, and features that two hash tables of one look up."""
    modules: dict[str, list[tuple[str, TableSpec]]] = defaultdict(list)
    for where, table in state.written_tables():
        modules[table.module_path].append((where, table))
    for path, members in modules.items():
        if path and (odd := next(((where, table) for where, table in members if table.hash_table is None), None)):
            named = next((one.name for _, one in members if one.hash_table is not None), None)
            if named is not None:
                where, table = odd
                issues.report(
                    f"{where}/hash_table",
                    f"table {quoted(table.name)} has none, and {quoted(named)} of the same module {quoted(path)} has"
                    " one: a module of managed collisions has one for every table",
                    "give it a hash_table, or another module_path",
                    reads=(f"{where}/module_path",),
                )
        for where, feature, first in _shared_features(members) if path else ():
            issues.report(
                where,
                f"the feature {quoted(feature)} is looked up in {quoted(first)} of the same module as well, and an id"
                " of a feature has one slot there",
                "give the feature another name, or the table another module_path",
            )


def _shared_features(members: list[tuple[str, TableSpec]]) -> Iterator[tuple[str, str, str]]:
    """Yield features that a second hash table of a module looks up: pointer, name, and the first table's name."""
    first: dict[str, str] = {}
    for where, table in members:
        if table.hash_table is None:
            continue
        named = (
            [("", table.name)]
            if table.features is None
            else [(f"/features/{number}", feature.name) for number, feature in enumerate(table.features)]
        )
        for place, feature in named:
            other = first.setdefault(feature, table.name)
            if other != table.name:
                yield f"{where}{place}", feature, other
