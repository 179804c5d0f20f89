"""Documents in columns: JSON, or bytes that are compressed and inserted once."""

from collections.abc import Mapping
from typing import Any

import zstandard
from sqlalchemy import Connection, and_, insert, select

Json = Mapping[str, object]

_ZSTD_LEVEL = 9


def packed(document: bytes, level: int = _ZSTD_LEVEL) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(document)


def unpacked(content: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(content)


def insert_missing(connection: Connection, table: Any, values: Mapping[str, object], *, document: bytes) -> None:
    """Insert a document, unless the table has one with the same primary key; writers take turns."""
    same = and_(*(key == values[key.name] for key in table.primary_key.columns))
    if connection.execute(select(1).where(same)).first() is None:
        connection.execute(insert(table).values(**values, document=packed(document)))
