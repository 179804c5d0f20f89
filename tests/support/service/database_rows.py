"""Rows for every table that there is, made from the tables themselves: a new table joins without a word here."""

import json
from typing import Any

from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, LargeBinary, Table, insert, select

from api.store.sql import tables
from api.store.sql.blobs import packed
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest

Rows = dict[str, list[tuple[object, ...]]]
NUM_ROWS = 3


def a_plan(number: int) -> dict[str, Any]:
    """A plan document with its digest."""
    core = {"schema_version": 1, "spec_digest": f"s{number}", "world_size": 1, "ranks_per_host": 1, "tables": []}
    return {**core, "plan_digest": plan_digest(core), "name": f"Plan {number} ✓"}


def tenant(number: int) -> str:
    """Whose rows are."""
    return f"tenant-{number}"


def fill(connection: Connection) -> None:
    """Put three rows into every table; keys refer to rows that are there."""
    for table in tables.metadata.sorted_tables:
        rows = [{column.name: _value(table, column, number) for column in table.columns} for number in range(NUM_ROWS)]
        connection.execute(insert(table), rows)


def all_rows(connection: Connection) -> Rows:
    """Everything that a database has, of processes apart."""
    return {
        table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
        for table in tables.metadata.sorted_tables
        if table.name != "executors"
    }


def _value(table: Table, column: Column[Any], number: int) -> object:
    for key in column.foreign_keys:
        return _value(key.column.table, key.column, number)
    if table.name == "plans" and column.name == "digest":
        return a_plan(number)["plan_digest"]
    if table.name == "solves" and column.name == "state":
        return ("queued", "running", "succeeded")[number]
    if column.name == "tenant":
        return tenant(number)
    if column.nullable and number == 0:
        return None
    if isinstance(column.type, LargeBinary):
        document = a_plan(number) if table.name == "plans" else {"n": number}
        return packed(canonical_bytes(document))
    if isinstance(column.type, JSON):
        return {"text": f"{column.name} \u2028 \"'\\ {number}", "numbers": [number, 0.1 + number], "none": None}
    if isinstance(column.type, Boolean):
        return number == 1
    if isinstance(column.type, Integer):
        return number + 2**31 - 9
    if isinstance(column.type, Float):
        return 0.1 + number * 1e9
    return json.dumps(f"{column.name} é\n{number}", ensure_ascii=False)
