"""Batches of measured rows, found by digest; the bytes behind a digest never change."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, select

from api.store.solves.idempotency import RequestKey, known_resource, remember
from api.store.sql import tables
from api.store.sql.blobs import insert_missing
from api.store.sql.repository import Repository

_BATCHES = tables.measurements
_BATCH = [column for column in _BATCHES.c if column.name not in ("tenant", "document")]

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementsRecord:
    """One batch of measured rows, without the rows."""

    digest: str
    device: str  # "" where its rows are of several
    num_rows: int
    source: str  # "benchmark", or "job": what a job saw that ran a plan
    plan_digest: str | None  # of a job
    comparison: Json | None  # of a job: its times beside the prediction of its plan
    created_at: float  # seconds since the epoch


class Measurements(Repository):
    """Measurements of one tenant."""

    def keep_measurements(
        self, record: MeasurementsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[MeasurementsRecord, bool]:
        """Keep a batch and return its record with True; or return that of an equal one, kept before, with False."""
        with self._writer.begin() as connection:
            if known_resource(connection, self._tenant, key) is None:
                remember(connection, self._tenant, key, record.digest)
            known = self._batch(connection, record.digest)
            if known is not None:
                return known, False
            insert_missing(connection, _BATCHES, {"tenant": self._tenant, **asdict(record)}, document=canonical)
            return record, True

    def measurements(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a batch."""
        this = (_BATCHES.c.tenant == self._tenant) & (_BATCHES.c.digest == digest)
        return self._blob(select(_BATCHES.c.document).where(this))

    def measurements_record(self, digest: str) -> MeasurementsRecord | None:
        """Return what is known of a batch."""
        with self._readers.begin() as connection:
            return self._batch(connection, digest)

    def measurements_records(self, *, limit: int, after: str | None, device: str | None) -> list[MeasurementsRecord]:
        """Return batches by digest, those with a digest above ``after``; of one device, where one is given."""
        query = select(*_BATCH).where(_BATCHES.c.tenant == self._tenant).order_by(_BATCHES.c.digest).limit(limit)
        if after is not None:
            query = query.where(_BATCHES.c.digest > after)
        if device is not None:
            query = query.where(_BATCHES.c.device == device)
        return self._records(query, MeasurementsRecord)

    def _batch(self, connection: Connection, digest: str) -> MeasurementsRecord | None:
        this = (_BATCHES.c.tenant == self._tenant) & (_BATCHES.c.digest == digest)
        row = connection.execute(select(*_BATCH).where(this)).mappings().first()
        return None if row is None else MeasurementsRecord(**row)
