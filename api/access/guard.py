"""Asks every request under ``/v1`` for a key, and for one that reaches as far as its route."""

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.caller import Stranger, caller_of, remember_caller
from api.access.key_ring import KeyRing
from api.access.scopes import is_open, scope_of
from api.errors import ApiError


class CallerMiddleware:
    """Finds out who sends a request; what that allows is for ``require_scope``, which knows the route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "http" and not is_open(scope["path"]):
            ring: KeyRing = scope["app"].state.services.key_ring
            remember_caller(scope, await ring.caller(Headers(scope=scope).get("authorization")))
        await self._app(scope, receive, send)


async def require_scope(request: Request) -> None:
    """Refuse a request whose caller is not known, or may not do this."""
    caller = caller_of(request.scope)
    assert caller is not None, "CallerMiddleware stands before every route that needs a scope"
    if isinstance(caller, Stranger):
        raise ApiError(caller.code, caller.detail, headers=caller.headers)
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    needed = scope_of(request.method, route.path_format)
    if not caller.may(needed):
        headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{needed}"'}
        detail = f"this needs the scope {needed}, which the key {caller.key_id} does not have"
        raise ApiError("forbidden", detail, headers=headers)
