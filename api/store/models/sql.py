"""Measurements and learned cost models in a SQL database: the part of the store that plans know nothing of."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, func, insert, select, tuple_, update

from api.store.access.audit import ACTIVATE, LOCAL, Actor
from api.store.access.audit_sql import append_audit
from api.store.contract.store import QueueFull
from api.store.models.records import (
    FAILED,
    FITTING,
    READY,
    ActivationConflict,
    ActivationRecord,
    Json,
    MeasurementsRecord,
    ModelRecord,
    UnknownModel,
)
from api.store.solves.idempotency import RequestKey
from api.store.solves.idempotency_sql import known_resource, remember
from api.store.sql import tables
from api.store.sql.blobs import insert_missing, unpacked
from api.store.sql.connections import Writer

CUT_OFF = {
    "code": "cut-off",
    "message": "the server ended while the model was fitted, as often as it was begun",
    "hint": "fit it to fewer rows, or give the server more memory",
}
_BATCHES, _HISTORY = tables.measurements, tables.activations
_BATCH = [column for column in _BATCHES.c if column.name not in ("tenant", "document")]
_ACTIVATION = [column for column in _HISTORY.c if column.name != "tenant"]
_MODEL = list(tables.cost_models.c)


class SqlModels:
    """Fulfils ``api.store.models.records.ModelStore`` over connections that read and a writer."""

    _readers: Engine
    _writer: Writer
    _tenant: str

    def keep_measurements(
        self, record: MeasurementsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[MeasurementsRecord, bool]:
        """Keep a batch, or return an equal one."""
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
        return self._document(select(_BATCHES.c.document).where(this))

    def measurements_record(self, digest: str) -> MeasurementsRecord | None:
        """Return what is known of a batch."""
        with self._readers.begin() as connection:
            return self._batch(connection, digest)

    def measurements_records(self, *, limit: int, after: str | None, device: str | None) -> list[MeasurementsRecord]:
        """Return batches by digest."""
        query = select(*_BATCH).where(_BATCHES.c.tenant == self._tenant).order_by(_BATCHES.c.digest).limit(limit)
        if after is not None:
            query = query.where(_BATCHES.c.digest > after)
        if device is not None:
            query = query.where(_BATCHES.c.device == device)
        with self._readers.begin() as connection:
            return [MeasurementsRecord(**row) for row in connection.execute(query).mappings()]

    def add_fit(
        self, name: str, *, request: Json, max_fitting: int, now: float, key: RequestKey | None = None
    ) -> ModelRecord:
        """Give a fit the next version of its name."""
        models = tables.cost_models
        with self._writer.begin() as connection:
            made = known_resource(connection, self._tenant, key)
            if made is not None:
                version = int(made.rpartition("@")[2])
                same = select(*_MODEL).where(self._version(name, version))
                return ModelRecord(**connection.execute(same).mappings().one())
            fitting = select(func.count()).select_from(models).where(models.c.state == FITTING)
            if connection.execute(fitting).scalar_one() >= max_fitting:
                raise QueueFull
            record = self._add(connection, name, state=FITTING, request=dict(request), device="", created_at=now)
            remember(connection, self._tenant, key, f"{name}@{record.version}")
            return record

    def add_model(
        self,
        name: str,
        *,
        digest: str,
        canonical: bytes,
        device: str,
        figures: Json,
        now: float,
        key: RequestKey | None = None,
    ) -> tuple[ModelRecord, bool]:
        """Keep a document as the next version, or return the version that has it."""
        models = tables.cost_models
        with self._writer.begin() as connection:
            if known_resource(connection, self._tenant, key) is None:
                remember(connection, self._tenant, key, digest)
            own = (models.c.tenant == self._tenant) & (models.c.name == name)
            same = select(*_MODEL).where(own, models.c.digest == digest).order_by(models.c.version)
            known = connection.execute(same.limit(1)).mappings().first()
            if known is not None:
                return ModelRecord(**known), False
            _keep_document(connection, digest, canonical, now)
            values = {"digest": digest, "device": device, "figures": dict(figures), "created_at": now, "ended_at": now}
            return self._add(connection, name, state=READY, **values), True

    def begin_fit(self, name: str, version: int, *, max_attempts: int, now: float) -> ModelRecord | None:
        """Start an attempt at a fit, or fail it."""
        models = tables.cost_models
        this = update(models).where(self._version(name, version), models.c.state == FITTING)
        with self._writer.begin() as connection:
            given_up = this.where(models.c.attempts >= max_attempts)
            connection.execute(given_up.values(state=FAILED, error=CUT_OFF, ended_at=now))
            if connection.execute(this.values(attempts=models.c.attempts + 1)).rowcount == 0:
                return None
            query = select(*_MODEL).where(self._version(name, version))
            return ModelRecord(**connection.execute(query).mappings().one())

    def unended_fits(self) -> list[ModelRecord]:
        """Return the fits of all tenants that wait or run."""
        models = tables.cost_models
        query = select(*_MODEL).where(models.c.state == FITTING).order_by(models.c.created_at, models.c.name)
        with self._readers.begin() as connection:
            return [ModelRecord(**row) for row in connection.execute(query).mappings()]

    def finish_fit(
        self,
        name: str,
        version: int,
        *,
        now: float,
        digest: str | None = None,
        canonical: bytes | None = None,
        device: str = "",
        figures: Json | None = None,
        error: Json | None = None,
        attempt: int | None = None,
    ) -> bool:
        """End a fit."""
        models = tables.cost_models
        this = update(models).where(self._version(name, version), models.c.state == FITTING)
        if attempt is not None:
            this = this.where(models.c.attempts == attempt)
        with self._writer.begin() as connection:
            if digest is not None and canonical is not None:
                _keep_document(connection, digest, canonical, now)
            state = FAILED if digest is None else READY
            values = {"state": state, "digest": digest, "device": device, "ended_at": now}
            told = {
                name: None if value is None else dict(value) for name, value in (("figures", figures), ("error", error))
            }
            ended = connection.execute(this.values(**values, **told))
            if ended.rowcount == 0:
                connection.rollback()
            return ended.rowcount == 1

    def model(self, name: str, version: int) -> ModelRecord | None:
        """Return one version."""
        return self._model(select(*_MODEL).where(self._version(name, version)))

    def models(self, *, limit: int, after: tuple[str, int] | None) -> list[ModelRecord]:
        """Return versions by name and number."""
        models = tables.cost_models
        own = select(*_MODEL).where(models.c.tenant == self._tenant)
        query = own.order_by(models.c.name, models.c.version).limit(limit)
        if after is not None:
            query = query.where(tuple_(models.c.name, models.c.version) > after)
        with self._readers.begin() as connection:
            return [ModelRecord(**row) for row in connection.execute(query).mappings()]

    def model_of_digest(self, digest: str) -> ModelRecord | None:
        """Return the first version that has this document."""
        models = tables.cost_models
        query = select(*_MODEL).where(models.c.tenant == self._tenant, models.c.digest == digest)
        return self._model(query.order_by(models.c.created_at, models.c.name, models.c.version).limit(1))

    def model_document(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a model."""
        documents, models = tables.cost_model_documents, tables.cost_models
        own = select(1).where(models.c.tenant == self._tenant, models.c.digest == digest).exists()
        return self._document(select(documents.c.document).where(documents.c.digest == digest, own))

    def activation(self, profile: str) -> ActivationRecord | None:
        """Return the model that is active for a hardware profile."""
        with self._readers.begin() as connection:
            return self._activation(connection, profile)

    def activate(
        self,
        profile: str,
        *,
        model_name: str,
        model_version: int,
        expected_version: int,
        now: float,
        by: Actor = LOCAL,
    ) -> ActivationRecord:
        """Make a version active."""
        models = tables.cost_models
        with self._writer.begin() as connection:
            current = self._activation(connection, profile)
            if (current.version if current else 0) != expected_version:
                raise ActivationConflict(current)
            named = self._version(model_name, model_version) & (models.c.state == READY)
            digest = connection.execute(select(models.c.digest).where(named)).scalar()
            if digest is None:
                raise UnknownModel
            values = {
                "profile": profile,
                "version": expected_version + 1,
                "model_name": model_name,
                "model_version": model_version,
                "digest": digest,
                "updated_at": now,
            }
            connection.execute(insert(_HISTORY).values(tenant=self._tenant, **values))
            new, subject = ActivationRecord(**values), f"hardware-profiles/{profile}/cost-model"
            told = {"before": _told(current), "after": _told(new)}
            append_audit(connection, self._tenant, by, ACTIVATE, subject, **told, now=now)
            return new

    def activation_history(self, profile: str) -> list[ActivationRecord]:
        """Return all that were active for a profile."""
        query = self._activations(profile).order_by(_HISTORY.c.version)
        with self._readers.begin() as connection:
            return [ActivationRecord(**row) for row in connection.execute(query).mappings()]

    def _version(self, name: str, version: int) -> ColumnElement[bool]:
        models = tables.cost_models.c
        return and_(models.tenant == self._tenant, models.name == name, models.version == version)

    def _add(self, connection: Connection, name: str, **values: Any) -> ModelRecord:
        """Add the next version of a name."""
        models = tables.cost_models
        own = (models.c.tenant == self._tenant) & (models.c.name == name)
        version = (connection.execute(select(func.max(models.c.version)).where(own)).scalar() or 0) + 1
        values = {"tenant": self._tenant, "name": name, "version": version, "attempts": 0, **values}
        connection.execute(insert(models).values(**values))
        row = connection.execute(select(*_MODEL).where(self._version(name, version))).mappings()
        return ModelRecord(**row.one())

    def _batch(self, connection: Connection, digest: str) -> MeasurementsRecord | None:
        this = (_BATCHES.c.tenant == self._tenant) & (_BATCHES.c.digest == digest)
        row = connection.execute(select(*_BATCH).where(this)).mappings().first()
        return None if row is None else MeasurementsRecord(**row)

    def _activations(self, profile: str) -> "Select[Any]":
        return select(*_ACTIVATION).where(_HISTORY.c.tenant == self._tenant, _HISTORY.c.profile == profile)

    def _activation(self, connection: Connection, profile: str) -> ActivationRecord | None:
        query = self._activations(profile).order_by(_HISTORY.c.version.desc()).limit(1)
        row = connection.execute(query).mappings().first()
        return None if row is None else ActivationRecord(**row)

    def _model(self, query: "Select[Any]") -> ModelRecord | None:
        with self._readers.begin() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else ModelRecord(**row)

    def _document(self, query: "Select[Any]") -> bytes | None:
        with self._readers.begin() as connection:
            packed = connection.execute(query).scalar()
        return None if packed is None else unpacked(packed)


def _told(active: ActivationRecord | None) -> Json | None:
    """What the audit trail says of an activation."""
    if active is None:
        return None
    cost_model = f"{active.model_name}@{active.model_version}"
    return {"version": active.version, "cost_model": cost_model, "digest": active.digest}


def _keep_document(connection: Connection, digest: str, canonical: bytes, now: float) -> None:
    values: Mapping[str, object] = {"digest": digest, "created_at": now}
    insert_missing(connection, tables.cost_model_documents, values, document=canonical)
