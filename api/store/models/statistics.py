"""Access statistics, found by digest."""

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, select

from api.store.solves.idempotency import RequestKey, insert_key, resource_of
from api.store.sql import tables
from api.store.sql.blobs import insert_missing
from api.store.sql.repository import TenantRepository, first_record

_TABLE = tables.statistics
_RECORD = [column for column in _TABLE.c if column.name not in ("tenant", "document")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRecord:
    """Stored statistics, without the document."""

    digest: str
    num_tables: int
    num_lookups: int  # of all tables
    created_at: float


class Statistics(TenantRepository):
    """Access statistics of one tenant."""

    def add_statistics(
        self, record: StatisticsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[StatisticsRecord, bool]:
        """Insert statistics and return their record with True; or return the record of equal ones with False."""
        with self._writer.begin() as connection:
            if resource_of(connection, self._tenant, key) is None:
                insert_key(connection, self._tenant, key, record.digest)
            query = select(*_RECORD).where(self._has_digest(record.digest))
            known = first_record(connection, query, StatisticsRecord)
            if known is not None:
                return known, False
            insert_missing(connection, _TABLE, {"tenant": self._tenant, **asdict(record)}, document=canonical)
            return record, True

    def statistics(self, digest: str) -> bytes | None:
        """Return the canonical bytes of statistics."""
        return self._blob(select(_TABLE.c.document).where(self._has_digest(digest)))

    def statistics_records(self, *, limit: int, after: str | None) -> list[StatisticsRecord]:
        """Return statistics by digest, those with a digest above ``after``."""
        query = select(*_RECORD).where(_TABLE.c.tenant == self._tenant).order_by(_TABLE.c.digest).limit(limit)
        if after is not None:
            query = query.where(_TABLE.c.digest > after)
        return self._records(query, StatisticsRecord)

    def _has_digest(self, digest: str) -> ColumnElement[bool]:
        return (_TABLE.c.tenant == self._tenant) & (_TABLE.c.digest == digest)
