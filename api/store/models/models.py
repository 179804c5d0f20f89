"""Learned cost models.

* Documents of models are found by digest; the bytes behind a digest never change.
* Versions of a name count from 1 without gaps, however many requests race. A version that has ended, ``ready`` or
  ``failed``, never changes again.
* ``begin_fit`` counts the attempts of a fit, so that a fit that ends the server with it is not begun forever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, insert, select, tuple_, update

from api.store.solves.idempotency import RequestKey, known_resource, remember
from api.store.solves.records import QueueFull
from api.store.sql import tables
from api.store.sql.blobs import insert_missing
from api.store.sql.repository import Repository
from api.store.tenants import DEFAULT_TENANT

FITTING, READY, FAILED = MODEL_STATES = ("fitting", "ready", "failed")
Json = Mapping[str, object]


CUT_OFF = {
    "code": "cut-off",
    "message": "the server ended while the model was fitted, as often as it was begun",
    "hint": "fit it to fewer rows, or give the server more memory",
}

_MODEL = list(tables.cost_models.c)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """One version of a learned model, without its document."""

    name: str
    version: int  # of this name, from 1
    state: str  # one of MODEL_STATES
    digest: str | None  # of the document; None before it is ready
    device: str  # "" before it is ready
    figures: Json | None  # of rows that were held out of its fit; None before it is ready
    request: Json | None  # what it is fitted to; None of one that was fitted elsewhere
    error: Json | None  # code and message of one that failed
    created_at: float
    ended_at: float | None
    attempts: int  # how often its fit was begun
    tenant: str = DEFAULT_TENANT


def model_id(record: ModelRecord) -> str:
    """Return what a version is called in addresses and references."""
    return f"{record.name}@{record.version}"


def fit_id(tenant: str, model: str) -> str:
    """Return by what the work of a fit is known, and its end: models of several tenants may be called alike.

    Those of ``default`` are called as they are, as before there were others.
    """
    return model if tenant == DEFAULT_TENANT else f"{tenant}/{model}"


def tenant_and_model(work_id: str) -> tuple[str, str]:
    """Return what ``fit_id`` was given; neither has a slash."""
    tenant, _, model = work_id.rpartition("/")
    return tenant or DEFAULT_TENANT, model


class Models(Repository):
    """Versions of learned cost models of one tenant."""

    def add_fit(
        self, name: str, *, request: Json, max_fitting: int, now: float, key: RequestKey | None = None
    ) -> ModelRecord:
        """Give a fit the next version of its name, or return the version of the same ``key``. Raises ``QueueFull``."""
        models = tables.cost_models
        with self._writer.begin() as connection:
            made = known_resource(connection, self._tenant, key)
            if made is not None:
                version = int(made.rpartition("@")[2])
                same = select(*_MODEL).where(version_of(self._tenant, name, version))
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
        """Keep a document as the next version of its name, and return it with True; or return the
        version of this name that has the document already, with False.
        """
        models = tables.cost_models
        with self._writer.begin() as connection:
            if known_resource(connection, self._tenant, key) is None:
                remember(connection, self._tenant, key, digest)
            own = (models.c.tenant == self._tenant) & (models.c.name == name)
            same = select(*_MODEL).where(own, models.c.digest == digest).order_by(models.c.version)
            known = connection.execute(same.limit(1)).mappings().first()
            if known is not None:
                return ModelRecord(**known), False
            _insert_document(connection, digest, canonical, now)
            values = {"digest": digest, "device": device, "figures": dict(figures), "created_at": now, "ended_at": now}
            return self._add(connection, name, state=READY, **values), True

    def begin_fit(self, name: str, version: int, *, max_attempts: int, now: float) -> ModelRecord | None:
        """Start an attempt at a fit, and return it; ``None`` where it has ended, or fails here, because it was
        begun ``max_attempts`` times already.
        """
        models = tables.cost_models
        this = update(models).where(version_of(self._tenant, name, version), models.c.state == FITTING)
        with self._writer.begin() as connection:
            given_up = this.where(models.c.attempts >= max_attempts)
            connection.execute(given_up.values(state=FAILED, error=CUT_OFF, ended_at=now))
            if connection.execute(this.values(attempts=models.c.attempts + 1)).rowcount == 0:
                return None
            query = select(*_MODEL).where(version_of(self._tenant, name, version))
            return ModelRecord(**connection.execute(query).mappings().one())

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
        """End a fit with its document, or with an error; False, and nothing happens, where it had ended already.

        Nor does anything happen where a later attempt than ``attempt`` was begun.
        """
        models = tables.cost_models
        this = update(models).where(version_of(self._tenant, name, version), models.c.state == FITTING)
        if attempt is not None:
            this = this.where(models.c.attempts == attempt)
        with self._writer.begin() as connection:
            if digest is not None and canonical is not None:
                _insert_document(connection, digest, canonical, now)
            state = FAILED if digest is None else READY
            values = {"state": state, "digest": digest, "device": device, "ended_at": now}
            entry = {
                name: None if value is None else dict(value) for name, value in (("figures", figures), ("error", error))
            }
            ended = connection.execute(this.values(**values, **entry))
            if ended.rowcount == 0:
                connection.rollback()
            return ended.rowcount == 1

    def model(self, name: str, version: int) -> ModelRecord | None:
        """Return one version."""
        return self._model(select(*_MODEL).where(version_of(self._tenant, name, version)))

    def models(self, *, limit: int, after: tuple[str, int] | None) -> list[ModelRecord]:
        """Return versions by name and number, those above ``after``."""
        models = tables.cost_models
        own = select(*_MODEL).where(models.c.tenant == self._tenant)
        query = own.order_by(models.c.name, models.c.version).limit(limit)
        if after is not None:
            query = query.where(tuple_(models.c.name, models.c.version) > after)
        return self._records(query, ModelRecord)

    def model_of_digest(self, digest: str) -> ModelRecord | None:
        """Return the first version that has this document."""
        models = tables.cost_models
        query = select(*_MODEL).where(models.c.tenant == self._tenant, models.c.digest == digest)
        return self._model(query.order_by(models.c.created_at, models.c.name, models.c.version).limit(1))

    def model_document(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a model."""
        documents, models = tables.cost_model_documents, tables.cost_models
        own = select(1).where(models.c.tenant == self._tenant, models.c.digest == digest).exists()
        return self._blob(select(documents.c.document).where(documents.c.digest == digest, own))

    def _add(self, connection: Connection, name: str, **values: Any) -> ModelRecord:
        """Add the next version of a name."""
        models = tables.cost_models
        own = (models.c.tenant == self._tenant) & (models.c.name == name)
        version = (connection.execute(select(func.max(models.c.version)).where(own)).scalar() or 0) + 1
        values = {"tenant": self._tenant, "name": name, "version": version, "attempts": 0, **values}
        connection.execute(insert(models).values(**values))
        row = connection.execute(select(*_MODEL).where(version_of(self._tenant, name, version))).mappings()
        return ModelRecord(**row.one())

    def _model(self, query: "Select[Any]") -> ModelRecord | None:
        with self._readers.begin() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else ModelRecord(**row)


class UnendedFits(Repository):
    """Fits of all tenants."""

    def unended_fits(self) -> list[ModelRecord]:
        """Return the fits that wait or run, oldest first."""
        models = tables.cost_models
        query = select(*_MODEL).where(models.c.state == FITTING).order_by(models.c.created_at, models.c.name)
        return self._records(query, ModelRecord)


def _insert_document(connection: Connection, digest: str, canonical: bytes, now: float) -> None:
    values: Mapping[str, object] = {"digest": digest, "created_at": now}
    insert_missing(connection, tables.cost_model_documents, values, document=canonical)


def version_of(tenant: str, name: str, version: int) -> ColumnElement[bool]:
    """Return the condition of one version of a tenant's model."""
    models = tables.cost_models.c
    return and_(models.tenant == tenant, models.name == name, models.version == version)
