"""What the service keeps of measurements and learned cost models, and what it may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* Measurements and documents of models are found by digest; bytes behind a digest never change.
* Versions of a name count from 1 without gaps, however many callers race. A version that has ended, ``ready`` or
  ``failed``, never changes again.
* ``begin_fit`` counts the attempts of a fit, so that one that takes the server down with it is not begun forever.
* ``activate`` succeeds only for the version that the caller names, as ``put_channel`` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from api.store.access.audit import LOCAL, Actor
from api.store.contract.tenants import DEFAULT_TENANT
from api.store.solves.idempotency import RequestKey

FITTING, READY, FAILED = MODEL_STATES = ("fitting", "ready", "failed")

Json = Mapping[str, object]


class UnknownModel(Exception):
    """No version of a model with this name, or it is not ready."""


class ActivationConflict(Exception):
    """Another version is active than the caller named; ``current`` is, or ``None`` where none is."""

    def __init__(self, current: "ActivationRecord | None") -> None:
        self.current = current
        super().__init__()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRecord:
    """The model that ``learned`` means for a hardware profile, at one version."""

    profile: str
    version: int  # from 1, one more for every change
    model_name: str
    model_version: int
    digest: str
    updated_at: float


class ModelStore(Protocol):
    """Measurements, learned cost models and which of them are active."""

    def keep_measurements(
        self, record: MeasurementsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[MeasurementsRecord, bool]:
        """Keep a batch and return its record with True; or return that of an equal one, kept before, with False."""
        ...

    def measurements(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a batch."""
        ...

    def measurements_record(self, digest: str) -> MeasurementsRecord | None:
        """Return what is known of a batch."""
        ...

    def measurements_records(self, *, limit: int, after: str | None, device: str | None) -> list[MeasurementsRecord]:
        """Return batches by digest, those with a digest above ``after``; of one device, where one is given."""
        ...

    def add_fit(
        self, name: str, *, request: Json, max_fitting: int, now: float, key: RequestKey | None = None
    ) -> ModelRecord:
        """Give a fit the next version of its name, or return the version of the same ``key``. Raises ``QueueFull``."""
        ...

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
        ...

    def begin_fit(self, name: str, version: int, *, max_attempts: int, now: float) -> ModelRecord | None:
        """Start an attempt at a fit, and return it; ``None`` where it has ended, or fails here, because it was
        begun ``max_attempts`` times already.
        """
        ...

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
        ...

    def model(self, name: str, version: int) -> ModelRecord | None:
        """Return one version."""
        ...

    def models(self, *, limit: int, after: tuple[str, int] | None) -> list[ModelRecord]:
        """Return versions by name and number, those above ``after``."""
        ...

    def model_of_digest(self, digest: str) -> ModelRecord | None:
        """Return the first version that has this document."""
        ...

    def model_document(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a model."""
        ...

    def activation(self, profile: str) -> ActivationRecord | None:
        """Return the model that is active for a hardware profile."""
        ...

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
        ...

    def activation_history(self, profile: str) -> list[ActivationRecord]:
        """Return all that were active for a profile, oldest first."""
        ...
