"""Batches of measured rows, found by digest; the bytes behind a digest never change."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Select, select

from api.store.solves.idempotency import RequestKey, insert_key, resource_of
from api.store.sql import tables
from api.store.sql.blobs import Json, insert_missing
from api.store.sql.repository import TenantRepository, first_record

_BATCHES = tables.measurements
_BATCH = [column for column in _BATCHES.c if column.name not in ("tenant", "document")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementsRecord:
    """One batch of measured rows, without the rows."""

    digest: str
    device: str  # "" if the rows are of several devices
    num_rows: int
    source: str  # "benchmark", or "job": what a job measured that ran a plan
    plan_digest: str | None  # of a job
    comparison: Json | None  # of a job: measured times and those that its plan predicts
    created_at: float  # seconds since the epoch


class Measurements(TenantRepository):
    """Batches of measured rows of one tenant."""

    def add_measurements(
        self, record: MeasurementsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[MeasurementsRecord, bool]:
        """Insert a batch and return its record with True; or return the record of an equal batch with False."""
        with self._writer.begin() as connection:
            if resource_of(connection, self._tenant, key) is None:
                insert_key(connection, self._tenant, key, record.digest)
            known = first_record(connection, self._batch(record.digest), MeasurementsRecord)
            if known is not None:
                return known, False
            insert_missing(connection, _BATCHES, {"tenant": self._tenant, **asdict(record)}, document=canonical)
            return record, True

    def measurements(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a batch."""
        own = (_BATCHES.c.tenant == self._tenant) & (_BATCHES.c.digest == digest)
        return self._blob(select(_BATCHES.c.document).where(own))

    def measurements_record(self, digest: str) -> MeasurementsRecord | None:
        return self._record(self._batch(digest), MeasurementsRecord)

    def measurements_records(self, *, limit: int, after: str | None, device: str | None) -> list[MeasurementsRecord]:
        """Return batches by digest, those with a digest above ``after``; of one device, if it is given."""
        query = select(*_BATCH).where(_BATCHES.c.tenant == self._tenant).order_by(_BATCHES.c.digest).limit(limit)
        if after is not None:
            query = query.where(_BATCHES.c.digest > after)
        if device is not None:
            query = query.where(_BATCHES.c.device == device)
        return self._records(query, MeasurementsRecord)

    def _batch(self, digest: str) -> Select[Any]:
        return select(*_BATCH).where(_BATCHES.c.tenant == self._tenant, _BATCHES.c.digest == digest)
