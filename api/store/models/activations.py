"""Which learned cost model is active for a hardware profile, and its history.

``activate`` succeeds only for the version that the request names, as ``put_channel`` does.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, insert, select

from api.store.access.audit import ACTIVATE, LOCAL, Actor, append_audit
from api.store.models.models import READY, Json, version_of
from api.store.sql import tables
from api.store.sql.repository import Repository

_HISTORY = tables.activations
_ACTIVATION = [column for column in _HISTORY.c if column.name != "tenant"]


class UnknownModel(Exception):
    """No version of a model with this name, or it is not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRecord:
    """The model that ``learned`` means for a hardware profile, at one version."""

    profile: str
    version: int  # from 1, one more for every change
    model_name: str
    model_version: int
    digest: str
    updated_at: float


class ActivationConflict(Exception):
    """Another version is active than the caller named; ``current`` is, or ``None`` where none is."""

    def __init__(self, current: "ActivationRecord | None") -> None:
        self.current = current
        super().__init__()


class Activations(Repository):
    """Active models of one tenant."""

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
        """Make a version active; ``expected_version`` 0 is where none is.

        Raises ``ActivationConflict`` or ``UnknownModel``.
        """
        models = tables.cost_models
        with self._writer.begin() as connection:
            current = self._activation(connection, profile)
            if (current.version if current else 0) != expected_version:
                raise ActivationConflict(current)
            named = version_of(self._tenant, model_name, model_version) & (models.c.state == READY)
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
            entry = {"before": _audit_entry(current), "after": _audit_entry(new)}
            append_audit(connection, self._tenant, by, ACTIVATE, subject, **entry, now=now)
            return new

    def activation_history(self, profile: str) -> list[ActivationRecord]:
        """Return all that were active for a profile, oldest first."""
        query = self._activations(profile).order_by(_HISTORY.c.version)
        return self._records(query, ActivationRecord)

    def _activations(self, profile: str) -> "Select[Any]":
        return select(*_ACTIVATION).where(_HISTORY.c.tenant == self._tenant, _HISTORY.c.profile == profile)

    def _activation(self, connection: Connection, profile: str) -> ActivationRecord | None:
        query = self._activations(profile).order_by(_HISTORY.c.version.desc()).limit(1)
        row = connection.execute(query).mappings().first()
        return None if row is None else ActivationRecord(**row)


def _audit_entry(active: ActivationRecord | None) -> Json | None:
    """What the audit trail says of an activation."""
    if active is None:
        return None
    cost_model = f"{active.model_name}@{active.model_version}"
    return {"version": active.version, "cost_model": cost_model, "digest": active.digest}
