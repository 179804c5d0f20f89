"""Which learned model ``learned`` means for a hardware profile: a line of versions, changed like a channel."""

import time
from collections.abc import Callable

from api.services.errors import ApiError, not_found
from api.services.preconditions import failed_condition
from api.specs.input.json import RejectedDocument
from api.store.access.audit import LOCAL, Actor
from api.store.database import TenantStore
from api.store.models.activations import ActivationConflict, ActivationRecord, UnknownModel
from cost_models.hardware.profiles_loader import profile_ids
from planner.errors import Issue


class ActivationService:
    """The use cases of activations."""

    def __init__(self, store: TenantStore, *, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def get(self, profile: str) -> ActivationRecord:
        _check_profile(profile)
        found = self._store.activation(profile)
        if found is None:
            raise ApiError("not-found", "no learned cost model was activated for this hardware profile")
        return found

    def put(
        self, profile: str, name: str, *, if_match: str | None, if_none_match: str | None, by: Actor = LOCAL
    ) -> ActivationRecord:
        """Make a version active; the caller says which one it replaces."""
        _check_profile(profile)
        current = self._store.activation(profile)
        expected = _expected_version(current, if_match, if_none_match)
        called, _, version = name.partition("@")
        try:
            return self._store.activate(
                profile,
                model_name=called,
                model_version=int(version),
                expected_version=expected,
                now=self._clock(),
                by=by,
            )
        except ActivationConflict as conflict:
            raise _changed(conflict.current, "somebody else activated a model at the same time") from None
        except UnknownModel:
            record = self._store.model(called, int(version))
            if record is None:
                raise not_found("cost model") from None
            message = f"the cost model is {record.state}, and only a ready one can be activated"
            issue = Issue(code="not-ready", pointer="/cost_model", message=message, hint="wait for its fit to end")
            raise RejectedDocument([issue]) from None


def etag_of(record: ActivationRecord) -> str:
    """Return the ETag of an activation: its version and what is active."""
    return f'"v{record.version}-{record.digest.removeprefix("sha256:")[:16]}"'


def _expected_version(current: ActivationRecord | None, if_match: str | None, if_none_match: str | None) -> int:
    """Return the version that a caller replaces; raises where it is another one than is there."""
    etag = None if current is None else etag_of(current)
    failed = failed_condition(etag, if_match=if_match, if_none_match=if_none_match)
    if current is None:
        if failed:
            raise _changed(None, "no model is active, so there is nothing to match")
        return 0
    if failed == "missing":
        detail = f"a model is active at version {current.version}; send If-Match: {etag}"
        raise ApiError("precondition-required", detail)
    if failed:
        at = f"the activation is at version {current.version}"
        raise _changed(current, at if failed == "If-Match" else "a model is active already")
    return current.version


def _changed(current: ActivationRecord | None, detail: str) -> ApiError:
    return ApiError("activation-changed", detail, headers={"ETag": etag_of(current)} if current else {})


def _check_profile(profile: str) -> None:
    if profile not in profile_ids():
        raise not_found("hardware profile")
