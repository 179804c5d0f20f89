"""The learned models that a service knows: those it keeps, among them those of the package."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.specs.references.cost_model import LEARNED, FoundModel, device_of
from api.specs.references.learned_model import load_model
from api.store.database import TenantStore
from api.store.models.models import READY, model_id
from cost_models.learned.shipped import shipped_for, shipped_models

_MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class StoredModels:
    """Fulfils ``api.specs.references.cost_model.FindModel``."""

    store: TenantStore

    def active(self, profile: str) -> FoundModel | None:
        """Return the model that was activated for a profile; else the shipped one of its machines."""
        active = self.store.activation(profile)
        if active is None:
            name = shipped_for(profile)
            return None if name is None else self.of_digest(load_model(shipped_models()[name]).digest)
        return self._found(active.digest, f"{active.model_name}@{active.model_version}")

    def named(self, name: str, version: int) -> FoundModel | None:
        record = self.store.model(name, version)
        return None if record is None or record.digest is None else self._found(record.digest, model_id(record))

    def of_digest(self, digest: str) -> FoundModel | None:
        record = self.store.model_of_digest(digest)
        return None if record is None else self._found(digest, model_id(record))

    def device_of(self, profile: str) -> str | None:
        return device_of(self.active(profile))

    def available(self) -> Sequence[str]:
        """Return references to the first that are ready."""
        listed = self.store.models(limit=_MAX_LISTED, after=None)
        return [f"{LEARNED}:{model_id(record)}" for record in listed if record.state == READY]

    def _found(self, digest: str, called: str) -> FoundModel | None:
        canonical = self.store.model_document(digest)
        return None if canonical is None else FoundModel(canonical=canonical, called=called)
