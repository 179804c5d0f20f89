"""What can be done with learned cost models: fit one, upload one, look, wait, stop, compare."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from api.execution.base import FITS, Work
from api.execution.fits.runner import FitRunner
from api.schemas.base import MODEL_ID, MODEL_NAME
from api.schemas.cost_models import MAX_BATCHES, CostModelRequest
from api.schemas.measured_batch import rows_of
from api.services.errors import ApiError, found, not_found, queue_full
from api.services.pages import page_of
from api.services.solves.notifications import SolveNotifications
from api.settings import Settings
from api.specs.input.json import RejectedDocument, parse_document
from api.specs.references.learned_model import MAX_MODEL_BYTES, assess, figures_of_model, load_model
from api.store.database import TenantStore
from api.store.models.measurements import MeasurementsRecord
from api.store.models.models import FITTING, ModelRecord, fit_id, model_id
from api.store.solves.idempotency import RequestKey
from api.store.solves.records import QueueFull
from api.store.tenants import DEFAULT_TENANT
from cost_models.measurements.check import MAX_ROWS
from cost_models.measurements.schema import joined
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import Issue

if TYPE_CHECKING:
    from api.execution.queue.dbos import DbosEngine  # commands that start no engine need not load it

_HINT = "GET /v1/measurements lists what there is"


class UnusableModel(Exception):
    """A model of the package cannot be read; the message is for people."""


class ModelService:
    """The use cases of learned models of one tenant."""

    def __init__(
        self,
        store: TenantStore,
        engine: "DbosEngine",
        runner: FitRunner,
        signals: SolveNotifications,
        settings: Settings,
        *,
        tenant: str = DEFAULT_TENANT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._engine, self._runner, self._signals = store, engine, runner, signals
        self._settings, self._tenant, self._clock = settings, tenant, clock

    def add(self, raw: bytes, key: RequestKey | None = None) -> tuple[ModelRecord, bool]:
        """Begin a fit or keep a document; return its version with True, or that of an equal document with False."""
        made = self._store.made_by(key)
        if made is not None and "@" in made:  # of a fit; an equal document has its version anyway
            return self.get(made), False
        request = parse_document(raw, CostModelRequest)
        if request.document is not None:
            return self._upload(json.loads(raw)["document"], key)
        assert request.name is not None
        batches = self._batches(request.measurements, request.device)
        fit_request = {"measurements": [batch.digest for batch in batches], "seed": request.seed}
        limit = self._settings.max_queued_fits
        try:
            record = self._store.add_fit(
                request.name, request=fit_request, max_fitting=limit, now=self._clock(), key=key
            )
        except QueueFull:
            raise queue_full(limit, "fit", retry_after_seconds=30) from None
        self._engine.submit(Work(FITS, fit_id(self._tenant, model_id(record))))
        return record, True

    def add_shipped(self, documents: Mapping[str, bytes]) -> None:
        """Keep the models of the package, by the names of their files, as versions like those that were uploaded.

        One that is kept already stays as it is; of another release with the same name it is the next version.

        Raises
        ------
        UnusableModel
            A document is damaged. A service without it would refuse what specs say, or plan by another model.
        """
        for name, content in documents.items():
            try:
                # Read first, so that to begin to serve a tenant writes nothing from its second time on.
                if self._store.model_of_digest(load_model(content).digest) is None:
                    self._keep(content)
            except RejectedDocument as error:
                why = error.issues[0].message
                raise UnusableModel(
                    f"the cost model {name} of this installation is damaged: {why}; install shardplan again"
                ) from error

    def get(self, name: str) -> ModelRecord:
        """Return the version that an id such as ``prod@3`` names."""
        if re.fullmatch(MODEL_ID, name) is None:
            raise not_found("cost model")
        called, _, version = name.partition("@")
        return found(self._store.model(called, int(version)), "cost model")

    def document(self, name: str) -> tuple[str, bytes]:
        """Return the digest and the canonical bytes of the model of an id that is ready."""
        record = self.get(name)
        document = None if record.digest is None else self._store.model_document(record.digest)
        if record.digest is None or document is None:
            raise ApiError("not-found", f"the cost model has no document: its state is {record.state}")
        return record.digest, document

    async def wait(self, name: str, seconds: float) -> ModelRecord:
        """Return a version as soon as it has ended, or as it stands after some time."""
        limit = min(seconds, self._settings.max_wait_seconds)
        work_id, read = fit_id(self._tenant, name), partial(self.get, name)
        return await self._signals.wait_for_end(work_id, read, lambda model: model.state != FITTING, limit)

    def cancel(self, name: str) -> ModelRecord:
        """Stop a fit; one that has ended stays as it is."""
        record = self.get(name)
        if record.state == FITTING:
            self._runner.cancel(record)
            record = self.get(name)
        return record

    def page(self, *, limit: int, after: str | None) -> tuple[Sequence[ModelRecord], str | None]:
        """Return a page of versions by name, and where the next one starts."""
        called, _, version = (after or "").partition("@")
        records = self._store.models(limit=limit + 1, after=(called, int(version)) if after else None)
        return page_of(records, limit, model_id)

    def compare(
        self, first: str, second: str, digests: Sequence[str] | None
    ) -> tuple[list[MeasurementsRecord], int, list[tuple[ModelRecord, dict[str, object]]]]:
        """Judge two models on the same rows: those of ``digests``, else of all that either was fitted to."""
        records = [self.get(first), self.get(second)]
        models = [load_model(self.document(name)[1]) for name in (first, second)]
        if not digests:
            digests = list(dict.fromkeys(digest for record in records for digest in fitted_to(record)))
            if not digests:
                raise ApiError(
                    "invalid-parameter", "neither model was fitted here: say which measurements to compare them on"
                )
        batches = self._batches(list(digests), None)
        contents = [self._store.measurements(batch.digest) for batch in batches]
        rows = joined([rows_of(content) for content in contents if content is not None])
        figures = [assess(model, rows) for model in models]
        return batches, rows.num_rows, list(zip(records, figures, strict=True))

    def _upload(self, document: dict[str, object], key: RequestKey | None) -> tuple[ModelRecord, bool]:
        content = canonical_bytes(document)
        if len(content) > MAX_MODEL_BYTES:
            raise ApiError("body-too-large", f"the document of a model has at most {MAX_MODEL_BYTES} bytes")
        try:
            return self._keep(content, key)
        except RejectedDocument as error:
            below = [issue.below("/document") for issue in error.issues]
            raise RejectedDocument(below, error.num_issues) from None

    def _keep(self, content: bytes, key: RequestKey | None = None) -> tuple[ModelRecord, bool]:
        """Check canonical bytes of a document and keep them; pointers of refusals begin at the document."""
        model = load_model(content)
        if re.fullmatch(MODEL_NAME, model.name) is None:
            message = f"the name of a model is spelled {MODEL_NAME}"
            raise RejectedDocument([Issue(code="invalid-value", pointer="/name", message=message)])
        return self._store.add_model(
            model.name,
            digest=model.digest,
            canonical=content,
            device=model.device,
            figures=figures_of_model(content),
            now=self._clock(),
            key=key,
        )

    def _batches(self, digests: Sequence[str] | None, device: str | None) -> list[MeasurementsRecord]:
        """Return batches by digest, or all of a device; they are of one device, and not too many rows."""
        base = "/measurements"
        if digests is None:
            found = self._store.measurements_records(limit=MAX_BATCHES + 1, after=None, device=device)
            base = "/device"
            if not found:
                raise _rejected(base, "unknown-measurements", "no measurements of this device", _HINT)
        else:
            records = [self._store.measurements_record(digest) for digest in dict.fromkeys(digests)]
            found = [record for record in records if record is not None]
            empty = next((record for record in found if not record.num_rows), None)
            if empty is not None:
                place = f"{base}/{list(digests).index(empty.digest)}"
                raise _rejected(place, "no-rows", "the batch has no rows to learn from", "its left_out says why")
            if len(found) < len(records):
                index = list(digests).index(list(dict.fromkeys(digests))[records.index(None)])
                raise _rejected(f"{base}/{index}", "unknown-measurements", "no measurements of this digest", _HINT)
        if len(found) > MAX_BATCHES:
            message = f"more than {MAX_BATCHES} batches are of this device"
            raise _rejected(base, "too-many-measurements", message, "name those to fit to in measurements")
        num_rows = sum(record.num_rows for record in found)
        if num_rows > MAX_ROWS:
            message = f"{num_rows} rows, {MAX_ROWS} at most"
            raise _rejected(base, "too-many-measurements", message, "name fewer batches in measurements")
        if len({record.device for record in found}) > 1 or not found[0].device:
            message = "the rows are of several devices, and a model is of one"
            raise _rejected(base, "several-devices", message, "fit one model for each device")
        return found


def fitted_to(record: ModelRecord) -> list[str]:
    """Return the digests of the measurements that a version was fitted to; none of one that was fitted elsewhere."""
    digests = (record.request or {}).get("measurements", [])
    assert isinstance(digests, list)
    return digests


def _rejected(where: str, code: str, message: str, hint: str) -> RejectedDocument:
    return RejectedDocument([Issue(code=code, pointer=where, message=message, hint=hint)])
