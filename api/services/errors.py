"""Expected answers that are errors; handlers turn them into problem details."""

from collections.abc import Mapping
from typing import TypeVar

from api.schemas.error_kinds import ERROR_KINDS
from cost_models.text.number_text import counted
from planner.errors import Issue

Value = TypeVar("Value")


class ApiError(Exception):
    """An expected answer that is an error; its code is one of ``ERROR_KINDS``."""

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        issues: tuple[Issue, ...] = (),
    ) -> None:
        """Without a ``detail``, the explanation of the kind is the detail."""
        self.kind = ERROR_KINDS[code]
        self.detail = self.kind.explanation if detail is None else detail
        self.headers = dict(headers or {})
        self.issues = issues
        super().__init__(self.detail)


def found(value: Value | None, what: str) -> Value:
    """Return a resource that was looked up; raises the error of one that does not exist."""
    if value is None:
        raise not_found(what)
    return value


def not_found(what: str) -> ApiError:
    return ApiError("not-found", f"no {what} of this id")


def queue_full(limit: int, what: str, *, retry_after_seconds: int) -> ApiError:
    detail = f"{counted(limit, what)} {'is' if limit == 1 else 'are'} waiting already"
    return ApiError("queue-full", detail, headers={"Retry-After": str(retry_after_seconds)})
