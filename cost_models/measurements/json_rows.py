"""Measured rows as JSON: a list of objects, one for each row, with the columns that it has."""

from collections.abc import Mapping, Sequence

from cost_models.measurements.cells import RowIssueCollector, from_values, refused
from cost_models.measurements.check import MAX_ROWS, check
from cost_models.measurements.schema import COLUMN_NAMES, COLUMNS, Measurements, measurements


def rows_from_json(items: Sequence[object]) -> Measurements:
    """Return checked rows out of a parsed JSON list; ``null`` is an empty value.

    Raises
    ------
    InvalidMeasurements
        With findings whose ``pointer`` leads into the list.
    """
    if len(items) > MAX_ROWS:
        raise refused(f"more than {MAX_ROWS:,} rows: send them in parts")
    issues = RowIssueCollector()
    known = frozenset(COLUMN_NAMES)
    objects: list[Mapping[str, object]] = []
    for row, item in enumerate(items):
        if not isinstance(item, Mapping):
            issues.add(row, "", item, "expected an object")
            objects.append({})
            continue
        objects.append(item)
        for name in item.keys() - known:
            issues.add(row, "", name, "unknown column")
    columns = {
        column.name: from_values(column, [item.get(column.name) for item in objects], 0, issues)
        for column in COLUMNS
        if any(column.name in item for item in objects)
    }
    issues.raise_if_any()
    return check(measurements(columns, len(objects)))


def rows_to_json(rows: Measurements) -> list[dict[str, object]]:
    """Return rows as objects that hold what is not empty."""
    lists = {name: rows.columns[name].tolist() for name in COLUMN_NAMES}
    return [
        {
            name: values[row]
            for name, values in lists.items()
            if values[row] not in ("", -1) and values[row] == values[row]  # NaN alone differs from itself
        }
        for row in range(rows.num_rows)
    ]
