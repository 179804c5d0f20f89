"""Modules of TorchRec: whether one embedding module can hold the tables that name it."""

from api.schemas.table import TableSpec
from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from planner.options.runtimes.registry import RUNTIMES


def check_modules(state: SpecState, issues: IssueCollector) -> None:
    """Report tables that cannot be in one module with the first table of its path.

    An ``EmbeddingBagCollection`` pools bags, all of them weighted or none; an ``EmbeddingCollection`` pools nothing,
    and all of its tables have one width. Tables without a path are of any module.
    """
    if not issues.is_sound("/runtime") or not RUNTIMES[state.spec.runtime].shares_operators:
        return
    first: dict[str, tuple[str, TableSpec]] = {}
    for where, table in state.written_tables():
        if not table.module_path:
            continue
        where_first, other = first.setdefault(table.module_path, (where, table))
        if found := _difference(table, other):
            field, mine, theirs, hint = found
            issues.report(
                f"{where}/{field}",
                f"table {quoted(table.name)} {mine}, and {quoted(other.name)} of the same module"
                f" {quoted(table.module_path)} {theirs}",
                f"{hint}, or give the tables other module_paths",
                reads=(f"{where}/module_path", f"{where_first}/module_path", f"{where_first}/{field}"),
            )


def _difference(table: TableSpec, other: TableSpec) -> tuple[str, str, str, str] | None:
    """Return the field in which a table cannot be in one module with another, what each has, and the way out."""
    if (table.pooling == "none") != (other.pooling == "none"):
        mine, theirs = ("is not", "is") if table.pooling == "none" else ("is", "is not")
        return "pooling", f"{mine} pooled", theirs, "pool all tables of a module or none"
    if table.pooling == "none" and table.embedding_dim != other.embedding_dim:
        mine, theirs = f"has {table.embedding_dim} columns", f"has {other.embedding_dim}"
        return "embedding_dim", mine, theirs, "give all tables of an EmbeddingCollection one embedding_dim"
    if table.is_weighted != other.is_weighted:
        mine, theirs = ("has", "has none") if table.is_weighted else ("has no", "has")
        return "is_weighted", f"{mine} weights of ids", theirs, "weight the ids of all tables of a module or none"
    return None
