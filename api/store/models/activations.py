"""Which learned cost model is active for a hardware profile, and its history.

``activate`` succeeds only for the version that the request names, as ``put_channel`` does.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, insert, select

from api.store.access.audit import ACTIVATE, LOCAL, Actor, append_audit
from api.store.models.models import READY, version_of
from api.store.sql import tables
from api.store.sql.blobs import Json
from api.store.sql.repository import TenantRepository, first_record

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

    @property
    def cost_model(self) -> str:
        return f"{self.model_name}@{self.model_version}"


class ActivationConflict(Exception):
    """Not the version that the caller named is active, but ``current``; ``None`` if none is."""

    def __init__(self, current: ActivationRecord | None) -> None:
        self.current = current
        super().__init__()


class Activations(TenantRepository):
    """Active models of one tenant."""

    def activation(self, profile: str) -> ActivationRecord | None:
        return self._record(self._last(profile), ActivationRecord)

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
        """Make a version active; ``expected_version`` is 0 if none is.

        Raises ``ActivationConflict`` or ``UnknownModel``.
        """
        models = tables.cost_models
        with self._writer.begin() as connection:
            current = first_record(connection, self._last(profile), ActivationRecord)
            if (current.version if current else 0) != expected_version:
                raise ActivationConflict(current)
            ready = version_of(self._tenant, model_name, model_version) & (models.c.state == READY)
            digest = connection.execute(select(models.c.digest).where(ready)).scalar()
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
            entries = _audit_entry(current), _audit_entry(new)
            append_audit(connection, self._tenant, by, ACTIVATE, subject, *entries, now=now)
            return new

    def activation_history(self, profile: str) -> list[ActivationRecord]:
        """Return all that were active for a profile, oldest first."""
        return self._records(self._of(profile).order_by(_HISTORY.c.version), ActivationRecord)

    def _of(self, profile: str) -> Select[Any]:
        return select(*_ACTIVATION).where(_HISTORY.c.tenant == self._tenant, _HISTORY.c.profile == profile)

    def _last(self, profile: str) -> Select[Any]:
        return self._of(profile).order_by(_HISTORY.c.version.desc()).limit(1)


def _audit_entry(active: ActivationRecord | None) -> Json | None:
    if active is None:
        return None
    return {"version": active.version, "cost_model": active.cost_model, "digest": active.digest}
