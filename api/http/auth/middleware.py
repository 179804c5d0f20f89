"""Requires of every request under ``/v1`` a key or a token, with the scope of its route."""

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, State
from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.auth.keys.verification import ApiKeyVerifier
from api.http.auth.principal import Principal, caller_of, set_principal
from api.http.auth.scopes import PRIORITY_SCOPE, is_open, scope_of
from api.http.auth.tokens.verification import TokenVerifier
from api.services.errors import ApiError


class CallerMiddleware:
    """Finds out who sends a request; what that allows is for ``require_scope``, which knows the route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_open(scope["path"]):
            authorization = Headers(scope=scope).get("authorization")
            set_principal(scope, await _verified(scope["app"].state, authorization))
        await self._app(scope, receive, send)


async def _verified(state: State, authorization: str | None) -> Principal | ApiError:
    """Return the caller of a header: by a token of the trusted issuer, or by a key of this service."""
    tokens: TokenVerifier | None = state.tokens  # None if no issuer is trusted
    keys: ApiKeyVerifier = state.api_keys
    if tokens is not None and authorization is not None:
        scheme, _, credentials = authorization.partition(" ")
        token = credentials.strip(" ")
        if scheme.lower() == "bearer" and token.count(".") == 2:
            return await tokens.caller(token)
    return await keys.caller(authorization)


async def require_scope(request: Request) -> None:
    """Reject a request whose caller is not known, or may not do this."""
    caller = caller_of(request.scope)
    assert caller is not None, "CallerMiddleware stands before every route that needs a scope"
    if isinstance(caller, ApiError):
        raise caller
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    needed = scope_of(request.method, route.path_format)
    _require(caller, needed, "this")


def require_priority_scope(request: Request, priority: int) -> None:
    """Reject a priority above 0 of callers who may not let solves start before those of others."""
    caller = caller_of(request.scope)
    if priority > 0 and isinstance(caller, Principal):
        _require(caller, PRIORITY_SCOPE, "a priority above 0")


def _require(caller: Principal, scope: str, what: str) -> None:
    if not caller.may(scope):
        headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
        detail = f"{what} needs the scope {scope}, which {caller.who} does not have"
        raise ApiError("forbidden", detail, headers=headers)
