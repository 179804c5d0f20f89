"""Statistics in a SQL database."""

from dataclasses import asdict

from sqlalchemy import ColumnElement, Engine, select

from api.store.contract.store import StatisticsRecord
from api.store.solves.idempotency import RequestKey
from api.store.solves.idempotency_sql import known_resource, remember
from api.store.sql import tables
from api.store.sql.blobs import insert_missing, unpacked
from api.store.sql.connections import Writer

_TABLE = tables.statistics
_RECORD = [column for column in _TABLE.c if column.name not in ("tenant", "document")]


class SqlStatistics:
    """The part of ``api.store.contract.store.Store`` that keeps statistics."""

    _readers: Engine
    _writer: Writer
    _tenant: str

    def keep_statistics(
        self, record: StatisticsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[StatisticsRecord, bool]:
        """Keep statistics, or return equal ones."""
        with self._writer.begin() as connection:
            if known_resource(connection, self._tenant, key) is None:
                remember(connection, self._tenant, key, record.digest)
            query = select(*_RECORD).where(self._this(record.digest))
            known = connection.execute(query).mappings().first()
            if known is not None:
                return StatisticsRecord(**known), False
            insert_missing(connection, _TABLE, {"tenant": self._tenant, **asdict(record)}, document=canonical)
            return record, True

    def statistics(self, digest: str) -> bytes | None:
        """Return the canonical bytes of statistics."""
        query = select(_TABLE.c.document).where(self._this(digest))
        with self._readers.begin() as connection:
            content = connection.execute(query).scalar()
        return None if content is None else unpacked(content)

    def statistics_records(self, *, limit: int, after: str | None) -> list[StatisticsRecord]:
        """Return statistics by digest."""
        query = select(*_RECORD).where(_TABLE.c.tenant == self._tenant).order_by(_TABLE.c.digest).limit(limit)
        if after is not None:
            query = query.where(_TABLE.c.digest > after)
        with self._readers.begin() as connection:
            return [StatisticsRecord(**row) for row in connection.execute(query).mappings()]

    def _this(self, digest: str) -> ColumnElement[bool]:
        return (_TABLE.c.tenant == self._tenant) & (_TABLE.c.digest == digest)
