"""Tables out of CSV: a head line with names of columns, then one line for each table."""

import csv
from collections.abc import Callable, Iterator, Mapping
from io import StringIO

from api.schemas.spec import MAX_TABLES
from api.specs.drafts.configs import type_name
from api.specs.drafts.draft import Draft, Table
from api.specs.input.json import RejectedDocument, is_quotable
from cost_models.text.read_number import finite_number, whole_number
from planner.errors import Issue

#: Columns, and other names that people have for them.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": ("table", "table_name"),
    "num_embeddings": ("rows", "num_rows", "hash_size", "cardinality"),
    "embedding_dim": ("dim", "emb_dim", "width"),
    "feature_names": ("features", "feature"),
    "pooling_factor": ("ids_per_sample",),
    "data_type": ("dtype",),
    "pooling": (),
    "optimizer": (),
    "module_path": ("module",),
    "zipf_alpha": (),
    "ids": (),
}
_REQUIRED = ("name", "num_embeddings", "embedding_dim")
_NAMES = {other: column for column, others in COLUMNS.items() for other in (column, *others)}
_DELIMITERS = ",;\t|"
_NUMBERS: Mapping[str, tuple[Callable[[str], float | None], str]] = {
    "num_embeddings": (whole_number, "a whole number"),
    "embedding_dim": (whole_number, "a whole number"),
    "pooling_factor": (finite_number, "a number"),
    "zipf_alpha": (finite_number, "a number"),
}
_SHOWN_CHARACTERS = 40


def is_table_sheet(text: str) -> bool:
    """Whether the first line of a text names columns of tables."""
    names = set(_head(text)[1])
    return len(names & set(_NAMES)) > 1


def draft_of_table_sheet(text: str) -> Draft:
    """Read tables out of CSV; cells are apart by a comma, a semicolon, a tab or a bar.

    Raises
    ------
    RejectedDocument
        A column is missing or stands twice, or a cell cannot be read; messages have the line and the column.
    """
    delimiter, head = _head(text)
    columns = [_NAMES.get(name) for name in head]
    issues = [
        _issue("missing-column", f"line 1 has no column {name}", f"columns that are read: {', '.join(COLUMNS)}")
        for name in _REQUIRED
        if name not in columns
    ]
    issues += [
        _issue("duplicate-column", f"line 1 names the column {name} more than once", "keep one of them")
        for name in COLUMNS
        if columns.count(name) > 1
    ]
    if issues:
        raise RejectedDocument(issues)
    tables: list[Table] = []
    for line, cells in _rows(text, delimiter):
        if len(cells) != len(head):
            message = f"line {line} has {len(cells)} cells, and line 1 has {len(head)} columns"
            issues.append(_issue("malformed-row", message, "give every line as many cells"))
            continue
        row = {column: cell.strip() for column, cell in zip(columns, cells, strict=True) if column and cell.strip()}
        found = list(_broken(line, row))
        issues += found
        if not found:
            tables.append(_table(row))
        if len(tables) > MAX_TABLES:
            issues.append(_issue("too-large", f"there are more than {MAX_TABLES:,} tables", "a spec takes no more"))
            break
    if not tables and not issues:
        issues.append(_issue("missing-rows", "no line has a table", "add a line for each table below line 1"))
    if issues:
        raise RejectedDocument(issues)
    unread = [name for name, column in zip(head, columns, strict=True) if column is None]
    warnings = [
        Issue(
            code="unread-column",
            pointer="",
            message=f"the column {name if is_quotable(name) else 'of another name'} is not read",
            hint=f"columns that are read: {', '.join(COLUMNS)}",
            severity="warning",
        )
        for name in unread
    ]
    return Draft(form="CSV of tables", tables=tuple(tables), warnings=tuple(warnings))


def _head(text: str) -> tuple[str, list[str]]:
    """Return what separates cells, and the names of the first line."""
    first = text.lstrip("\ufeff").partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    cells = next(csv.reader([first], delimiter=delimiter), [])
    return delimiter, [cell.strip().lower() for cell in cells]


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each line of a table with its number; raises ``RejectedDocument`` if quotes do not end."""
    reader = csv.reader(StringIO(text.lstrip("\ufeff")), delimiter=delimiter, strict=True)
    try:
        next(reader, None)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        message = f"line {reader.line_num} is no CSV: {error}"
        raise RejectedDocument([_issue("malformed-row", message, "check the quotes of that line")]) from None


def _broken(line: int, row: Mapping[str, str]) -> Iterator[Issue]:
    for column in _REQUIRED:
        if column not in row:
            yield _issue("missing-field", f"line {line} has no {column}", "fill the cell in")
    for column, (read, what) in _NUMBERS.items():
        if column in row and read(row[column]) is None:
            message = f'line {line}, {column}: "{row[column][:_SHOWN_CHARACTERS]}" is not {what}'
            yield _issue("invalid-value", message, "write digits without separators, such as 1000000")


def _table(row: Mapping[str, str]) -> Table:
    table: Table = {"name": row["name"]}
    for column, (read, _) in _NUMBERS.items():
        if column in row and column not in ("pooling_factor", "zipf_alpha"):
            table[column] = read(row[column])
    for column in ("data_type", "pooling"):
        if column in row:
            table[column] = type_name(row[column])
    for column in ("optimizer", "module_path"):
        if column in row:
            table[column] = row[column]
    names = row.get("feature_names", "").replace(";", " ").split()
    if "pooling_factor" in row:
        factor = finite_number(row["pooling_factor"])
        table["features"] = [{"name": name, "pooling_factor": factor} for name in names or [row["name"]]]
    elif names:
        table["feature_names"] = names
    access: dict[str, object] = {"ids": row["ids"]} if "ids" in row else {}
    if "zipf_alpha" in row:
        access["zipf_alpha"] = finite_number(row["zipf_alpha"])
    if access:
        table["access"] = access
    return table


def _issue(code: str, message: str, hint: str) -> Issue:
    return Issue(code=code, pointer="", message=message, hint=hint)
