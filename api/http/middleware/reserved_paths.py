"""Refuses addresses that no name here can have, before anything compares them with what is stored."""

from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.protocol.problem_response import refuse

_NUL = b"%00"


class AddressCheckMiddleware:
    """Finds nothing at a path that cannot be printed, and refuses NUL in a query, for which PostgreSQL cannot be asked.

    To the router, ``/v1/channels/a`` and the same with a line end after it would be one address. Nor does any address
    of the interface end with a slash: names of channels, which may have slashes within, would be asked for there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].isprintable():
            await refuse(scope, receive, send, "not-found", "the path holds a character that cannot be printed")
        elif scope["type"] == "http" and scope["path"].startswith("/v1/") and scope["path"].endswith("/"):
            await refuse(scope, receive, send, "not-found", "no address ends with a slash; leave it out")
        elif scope["type"] == "http" and _NUL in scope["query_string"]:
            await refuse(scope, receive, send, "invalid-parameter", "the query holds a NUL")
        else:
            await self._app(scope, receive, send)
