"""Learned cost models, their documents and their fits.

* Documents of models are found by digest; the bytes behind a digest never change.
* Versions of a name count from 1 without gaps, however many requests race. A version that has ended, ``ready`` or
  ``failed``, never changes again.
* ``begin_fit`` counts the attempts of a fit, so that a fit that ends the server with it is not begun forever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, insert, select, tuple_, update

from api.store.solves.idempotency import RequestKey, insert_key, resource_of
from api.store.solves.records import QueueFull
from api.store.sql import tables
from api.store.sql.blobs import Json, insert_missing
from api.store.sql.repository import Repository, TenantRepository, first_record
from api.store.tenants import DEFAULT_TENANT

FITTING, READY, FAILED = MODEL_STATES = ("fitting", "ready", "failed")
CUT_OFF = {
    "code": "cut-off",
    "message": "the server ended while the model was fitted, as often as it was begun",
    "hint": "fit it to fewer rows, or give the server more memory",
}
_MODELS, _DOCUMENTS = tables.cost_models, tables.cost_model_documents


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """One version of a learned model, without its document."""

    name: str
    version: int  # of this name, from 1
    state: str  # one of MODEL_STATES
    digest: str | None  # of the document; None before it is ready
    device: str  # "" before it is ready
    figures: Json | None  # of rows that were held out of its fit; None before it is ready
    request: Json | None  # what it is fitted to; None if it was fitted elsewhere
    error: Json | None  # code and message if it failed
    created_at: float
    ended_at: float | None
    attempts: int  # at its fit
    tenant: str = DEFAULT_TENANT


def model_id(record: ModelRecord) -> str:
    """Return the id of a version in addresses and references."""
    return f"{record.name}@{record.version}"


def fit_id(tenant: str, model: str) -> str:
    """Return the id of the work of a fit: models of several tenants may have one name.

    For ``default`` it is the id of the model, as before there were tenants.
    """
    return model if tenant == DEFAULT_TENANT else f"{tenant}/{model}"


def tenant_and_model(work_id: str) -> tuple[str, str]:
    """Return the arguments of ``fit_id``; neither has a slash."""
    tenant, _, model = work_id.rpartition("/")
    return tenant or DEFAULT_TENANT, model


class Models(TenantRepository):
    """Versions of learned cost models of one tenant."""

    def add_fit(
        self, name: str, *, request: Json, max_fitting: int, now: float, key: RequestKey | None = None
    ) -> ModelRecord:
        """Add a fit as the next version of a name, or return the version of the same ``key``. Raises ``QueueFull``."""
        with self._writer.begin() as connection:
            made = resource_of(connection, self._tenant, key)
            if made is not None:
                return self._get(connection, name, int(made.rpartition("@")[2]))
            fitting = select(func.count()).select_from(_MODELS).where(_MODELS.c.state == FITTING)
            if connection.execute(fitting).scalar_one() >= max_fitting:
                raise QueueFull
            record = self._add(connection, name, state=FITTING, request=dict(request), device="", created_at=now)
            insert_key(connection, self._tenant, key, model_id(record))
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
        """Add a document as the next version of a name, and return it with True.

        With False, return the version of this name that has the document already.
        """
        with self._writer.begin() as connection:
            if resource_of(connection, self._tenant, key) is None:
                insert_key(connection, self._tenant, key, digest)
            equal = self._own().where(_MODELS.c.name == name, _MODELS.c.digest == digest)
            known = first_record(connection, equal.order_by(_MODELS.c.version).limit(1), ModelRecord)
            if known is not None:
                return known, False
            _insert_document(connection, digest, canonical, now)
            values = {"digest": digest, "device": device, "figures": dict(figures), "created_at": now, "ended_at": now}
            return self._add(connection, name, state=READY, **values), True

    def begin_fit(self, name: str, version: int, *, max_attempts: int, now: float) -> ModelRecord | None:
        """Start an attempt at a fit, and return it; ``None`` if it has ended, or fails here after ``max_attempts``."""
        this = update(_MODELS).where(version_of(self._tenant, name, version), _MODELS.c.state == FITTING)
        with self._writer.begin() as connection:
            given_up = this.where(_MODELS.c.attempts >= max_attempts)
            connection.execute(given_up.values(state=FAILED, error=CUT_OFF, ended_at=now))
            if connection.execute(this.values(attempts=_MODELS.c.attempts + 1)).rowcount == 0:
                return None
            return self._get(connection, name, version)

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
        """End a fit with its document, or with an error.

        False, and nothing happens, if it had ended already, or a later ``attempt`` than this was begun.
        """
        this = update(_MODELS).where(version_of(self._tenant, name, version), _MODELS.c.state == FITTING)
        if attempt is not None:
            this = this.where(_MODELS.c.attempts == attempt)
        values = {
            "state": FAILED if digest is None else READY,
            "digest": digest,
            "device": device,
            "ended_at": now,
            "figures": None if figures is None else dict(figures),
            "error": None if error is None else dict(error),
        }
        with self._writer.begin() as connection:
            if digest is not None and canonical is not None:
                _insert_document(connection, digest, canonical, now)
            ended = connection.execute(this.values(**values))
            if ended.rowcount == 0:
                connection.rollback()
            return ended.rowcount == 1

    def model(self, name: str, version: int) -> ModelRecord | None:
        return self._record(select(_MODELS).where(version_of(self._tenant, name, version)), ModelRecord)

    def models(self, *, limit: int, after: tuple[str, int] | None) -> list[ModelRecord]:
        """Return versions by name and number, those above ``after``."""
        query = self._own().order_by(_MODELS.c.name, _MODELS.c.version).limit(limit)
        if after is not None:
            query = query.where(tuple_(_MODELS.c.name, _MODELS.c.version) > after)
        return self._records(query, ModelRecord)

    def model_of_digest(self, digest: str) -> ModelRecord | None:
        """Return the first version that has this document."""
        query = self._own().where(_MODELS.c.digest == digest)
        first = query.order_by(_MODELS.c.created_at, _MODELS.c.name, _MODELS.c.version).limit(1)
        return self._record(first, ModelRecord)

    def model_document(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a model."""
        own = select(1).where(_MODELS.c.tenant == self._tenant, _MODELS.c.digest == digest).exists()
        return self._blob(select(_DOCUMENTS.c.document).where(_DOCUMENTS.c.digest == digest, own))

    def _own(self) -> Select[Any]:
        return select(_MODELS).where(_MODELS.c.tenant == self._tenant)

    def _get(self, connection: Connection, name: str, version: int) -> ModelRecord:
        query = select(_MODELS).where(version_of(self._tenant, name, version))
        return ModelRecord(**connection.execute(query).mappings().one())

    def _add(self, connection: Connection, name: str, **values: Any) -> ModelRecord:
        own = (_MODELS.c.tenant == self._tenant) & (_MODELS.c.name == name)
        version = (connection.execute(select(func.max(_MODELS.c.version)).where(own)).scalar() or 0) + 1
        values = {"tenant": self._tenant, "name": name, "version": version, "attempts": 0, **values}
        connection.execute(insert(_MODELS).values(**values))
        return self._get(connection, name, version)


class Fits(Repository):
    """Models of all tenants, for the processes that fit them."""

    def unended_fits(self) -> list[ModelRecord]:
        """Return the fits that are queued or run, oldest first."""
        query = select(_MODELS).where(_MODELS.c.state == FITTING).order_by(_MODELS.c.created_at, _MODELS.c.name)
        return self._records(query, ModelRecord)

    def num_models_by_state(self) -> Mapping[str, int]:
        return self._num_by(_MODELS.c.state)


def version_of(tenant: str, name: str, version: int) -> ColumnElement[bool]:
    """Return the condition of one version of a tenant's model."""
    return and_(_MODELS.c.tenant == tenant, _MODELS.c.name == name, _MODELS.c.version == version)


def _insert_document(connection: Connection, digest: str, canonical: bytes, now: float) -> None:
    insert_missing(connection, _DOCUMENTS, {"digest": digest, "created_at": now}, document=canonical)
