"""What all repositories share: connections, the tenant, and how rows become records."""

from typing import Any, TypeVar

from sqlalchemy import Engine, Select

from api.store.sql.blobs import unpacked
from api.store.sql.connections import Writer

Record = TypeVar("Record")


class Repository:
    """One aggregate in a SQL database; :class:`api.store.database.SqlStore` sets the attributes."""

    _readers: Engine
    _writer: Writer
    _tenant: str

    def _records(self, query: "Select[Any]", record: type[Record]) -> list[Record]:
        """Return a record for every row; columns are named as its fields."""
        with self._readers.begin() as connection:
            return [record(**row) for row in connection.execute(query).mappings()]

    def _blob(self, query: "Select[Any]") -> bytes | None:
        """Return the document in the first column of the first row, uncompressed."""
        with self._readers.begin() as connection:
            content = connection.execute(query).scalar()
        return None if content is None else unpacked(content)
