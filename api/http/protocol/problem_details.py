"""Exceptions become problem details (RFC 9457): one shape for every error of the service."""

import json
import logging
from collections.abc import Mapping
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from api.observability.request_id import HEADER, request_id_of
from api.schemas.error_kinds import ERROR_KINDS
from api.services.errors import ApiError
from api.specs.checks.hardware_numbers import cost_model_issue
from api.specs.input.json import RejectedDocument, pointer
from api.specs.input.messages import describe_parameter
from api.store.solves.idempotency import KeyReused
from cost_models.errors import CostModelError
from planner.errors import InvalidProblem, Issue, UnsupportedRequest

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1
MAX_DETAIL_LENGTH = 500

log = logging.getLogger(__name__)

#: What drivers raise if the database cannot be used now: gone, locked, full, read only after a failover, or all
#: connections taken.
_UNAVAILABLE = (OperationalError, InterfaceError, InternalError, PoolTimeout)
#: Errors whose type says all.
_CODES = {KeyReused: "key-reused", **dict.fromkeys(_UNAVAILABLE, "storage-unavailable")}


def problem_bytes(
    code: str, detail: str, request_id: str, *, issues: tuple[Issue, ...] = (), num_issues: int | None = None
) -> bytes:
    kind = ERROR_KINDS[code]
    document: dict[str, object] = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "code": kind.code,
        "detail": detail[:MAX_DETAIL_LENGTH],
        "request_id": request_id,
        "retryable": kind.retryable,
    }
    if issues:
        document["errors"] = [
            {
                "pointer": issue.pointer,
                "code": issue.code,
                "message": issue.message[:MAX_DETAIL_LENGTH],
                "hint": issue.hint[:MAX_DETAIL_LENGTH],
            }
            for issue in issues
        ]
        document["num_errors"] = len(issues) if num_issues is None else num_issues
    return json.dumps(document, ensure_ascii=True).encode()


def problem_response(
    request: Request,
    code: str,
    detail: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    issues: tuple[Issue, ...] = (),
    num_issues: int | None = None,
) -> Response:
    """Return a problem document as the answer to a request; by default its detail explains the kind of problem."""
    request_id, kind = request_id_of(request.scope), ERROR_KINDS[code]
    extra = {"Retry-After": str(RETRY_AFTER_SECONDS)} if kind.retryable else {}
    return Response(
        problem_bytes(code, detail or kind.explanation, request_id, issues=issues, num_issues=num_issues),
        status_code=kind.status,
        media_type=MEDIA_TYPE,
        headers={**extra, **(headers or {}), HEADER: request_id, "Cache-Control": "no-store"},
    )


def add_error_handlers(app: FastAPI) -> None:
    """Make every error of ``app`` a problem document."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(InvalidProblem, _invalid_problem)
    app.add_exception_handler(UnsupportedRequest, _unsupported)
    app.add_exception_handler(CostModelError, _cost_model)
    app.add_exception_handler(RequestValidationError, _invalid_parameter)
    app.add_exception_handler(HTTPException, _http_exception)
    for error, code in _CODES.items():
        app.add_exception_handler(error, partial(_coded, code))
    app.add_exception_handler(Exception, _internal)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return problem_response(request, error.kind.code, error.detail, headers=error.headers, issues=error.issues)


async def _invalid_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidProblem)
    total = error.num_issues if isinstance(error, RejectedDocument) else len(error.issues)
    detail = f"{total} rule{'s are' if total != 1 else ' is'} broken"
    if total > len(error.issues):
        detail += f", the first {len(error.issues)} are listed"
    return problem_response(request, error.code, detail, issues=error.issues, num_issues=total)


async def _unsupported(request: Request, error: Exception) -> Response:
    assert isinstance(error, UnsupportedRequest)
    return problem_response(request, error.code, error.issue.message, issues=(error.issue,), num_issues=1)


async def _cost_model(request: Request, error: Exception) -> Response:
    assert isinstance(error, CostModelError)
    return await _unsupported(request, UnsupportedRequest(cost_model_issue(error, "")))


async def _invalid_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    issues = tuple(
        Issue(code="invalid-parameter", pointer=pointer(detail["loc"]), message=message, hint=hint)
        for detail in error.errors()[:10]
        for message, hint in (describe_parameter(detail),)
    )
    return problem_response(request, "invalid-parameter", "a parameter is not accepted", issues=issues)


async def _http_exception(request: Request, error: Exception) -> Response:
    """What the router itself answers: no such address, or not with this method."""
    assert isinstance(error, HTTPException)
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "invalid-parameter")
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return problem_response(request, code, headers=headers)


def _allowed(request: Request) -> str:
    """Return the methods of all routes that have this address, not of the first one alone."""
    methods: set[str] = set()
    for route in request.app.state.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods))


async def _coded(code: str, request: Request, _error: Exception) -> Response:
    return problem_response(request, code)


async def _internal(request: Request, _error: Exception) -> Response:
    # The server logs the traceback, which knows nothing of requests.
    log.error("a request failed; its traceback follows", extra={"request_id": request_id_of(request.scope)})
    return problem_response(request, "internal")
