"""The time by the clock of the database, which all its servers share."""

from sqlalchemy import ColumnElement, Connection, Float, literal_column

#: Seconds since the epoch by the clock of the database, not of the transaction's begin.
_CLOCKS = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())",
}


def database_now(connection: Connection) -> ColumnElement[float]:
    """Return the time as a part of a statement."""
    return literal_column(_CLOCKS[connection.dialect.name], Float())
