"""What all repositories share: connections, and how rows become records."""

from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Select, func, select

from api.store.sql.blobs import unpacked
from api.store.sql.connections import Engines

Record = TypeVar("Record")


class Repository:
    """Rows of all tenants."""

    def __init__(self, engines: Engines) -> None:
        self.engines, self._readers, self._writer = engines, engines.readers, engines.writer

    def ping(self) -> None:
        """Raise if the database cannot be read."""
        with self._readers.begin() as connection:
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()

    def _records(self, query: Select[Any], record: type[Record]) -> list[Record]:
        """Return a record for each row; columns have the names of its fields."""
        with self._readers.begin() as connection:
            return [record(**row) for row in connection.execute(query).mappings()]

    def _record(self, query: Select[Any], record: type[Record]) -> Record | None:
        """Return the record of the first row."""
        with self._readers.begin() as connection:
            return first_record(connection, query, record)

    def _blob(self, query: Select[Any]) -> bytes | None:
        """Return the document in the first column of the first row, uncompressed."""
        with self._readers.begin() as connection:
            content = connection.execute(query).scalar()
        return None if content is None else unpacked(content)

    def _num_by(self, column: "Column[str]") -> Mapping[str, int]:
        """Return the number of rows for each value of a column; values without rows are left out."""
        with self._readers.begin() as connection:
            return {key: number for key, number in connection.execute(select(column, func.count()).group_by(column))}


class TenantRepository(Repository):
    """Rows of one tenant."""

    def __init__(self, engines: Engines, tenant: str) -> None:
        super().__init__(engines)
        self._tenant = tenant


def first_record(connection: Connection, query: Select[Any], record: type[Record]) -> Record | None:
    """Return the record of the first row, in a transaction."""
    row = connection.execute(query).mappings().first()
    return None if row is None else record(**row)
