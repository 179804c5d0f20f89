"""Expected answers that are errors; handlers turn them into problem details."""

from collections.abc import Mapping

from api.schemas.error_kinds import ERROR_KINDS
from planner.errors import Issue


class ApiError(Exception):
    """An expected answer that is an error; its code is one of ``ERROR_KINDS``."""

    def __init__(
        self, code: str, detail: str, *, headers: Mapping[str, str] | None = None, issues: tuple[Issue, ...] = ()
    ) -> None:
        self.kind = ERROR_KINDS[code]
        self.detail = detail
        self.headers = dict(headers or {})
        self.issues = issues
        super().__init__(detail)


def not_found(what: str) -> ApiError:
    """Return the error for a resource that does not exist."""
    return ApiError("not-found", f"no {what} of this id")
