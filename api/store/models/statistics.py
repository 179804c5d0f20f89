"""Access statistics, found by digest."""

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, select

from api.store.solves.idempotency import RequestKey, known_resource, remember
from api.store.sql import tables
from api.store.sql.blobs import insert_missing, unpacked
from api.store.sql.repository import Repository

_TABLE = tables.statistics
_RECORD = [column for column in _TABLE.c if column.name not in ("tenant", "document")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRecord:
    """Stored statistics, without the document."""

    digest: str
    num_tables: int
    num_lookups: int  # of all tables
    created_at: float


class StatisticsDocuments(Repository):
    """Access statistics of one tenant."""

    def keep_statistics(
        self, record: StatisticsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[StatisticsRecord, bool]:
        """Keep statistics and return their record with True; or return that of equal ones, kept before, with False."""
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
        """Return statistics by digest, those with a digest above ``after``."""
        query = select(*_RECORD).where(_TABLE.c.tenant == self._tenant).order_by(_TABLE.c.digest).limit(limit)
        if after is not None:
            query = query.where(_TABLE.c.digest > after)
        return self._records(query, StatisticsRecord)

    def _this(self, digest: str) -> ColumnElement[bool]:
        return (_TABLE.c.tenant == self._tenant) & (_TABLE.c.digest == digest)
