"""Statistics in a SQL database."""

from dataclasses import asdict

from sqlalchemy import Engine, select

from api.store import tables
from api.store.base import StatisticsRecord
from api.store.blobs import insert_missing, unpacked
from api.store.engines import Writer
from api.store.idempotency import RequestKey
from api.store.request_keys import known_resource, remember

_STATISTICS = [column for column in tables.statistics.c if column.name != "document"]


class SqlStatistics:
    """The part of ``api.store.base.Store`` that keeps statistics."""

    _readers: Engine
    _writer: Writer

    def keep_statistics(
        self, record: StatisticsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[StatisticsRecord, bool]:
        """Keep statistics, or return equal ones."""
        with self._writer.begin() as connection:
            if known_resource(connection, key) is None:
                remember(connection, key, record.digest)
            query = select(*_STATISTICS).where(tables.statistics.c.digest == record.digest)
            known = connection.execute(query).mappings().first()
            if known is not None:
                return StatisticsRecord(**known), False
            insert_missing(connection, tables.statistics, asdict(record), document=canonical)
            return record, True

    def statistics(self, digest: str) -> bytes | None:
        """Return the canonical bytes of statistics."""
        query = select(tables.statistics.c.document).where(tables.statistics.c.digest == digest)
        with self._readers.begin() as connection:
            content = connection.execute(query).scalar()
        return None if content is None else unpacked(content)

    def statistics_records(self, *, limit: int, after: str | None) -> list[StatisticsRecord]:
        """Return statistics by digest."""
        query = select(*_STATISTICS).order_by(tables.statistics.c.digest).limit(limit)
        if after is not None:
            query = query.where(tables.statistics.c.digest > after)
        with self._readers.begin() as connection:
            return [StatisticsRecord(**row) for row in connection.execute(query).mappings()]
