"""Refuses addresses that no name here can have, before anything compares them with what is stored."""

from starlette.types import ASGIApp, Receive, Scope, Send

from api.refusal import refuse

_NUL = b"%00"


class AddressCheckMiddleware:
    """Refuses what cannot be printed in a path, and NUL in a query, for which PostgreSQL cannot even be asked.

    To the router, ``/v1/channels/a`` and the same with a line end after it are one address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass every other request on."""
        if scope["type"] == "http" and (not scope["path"].isprintable() or _NUL in scope["query_string"]):
            detail = "the path holds a character that cannot be printed, or the query a NUL"
            await refuse(scope, receive, send, "invalid-parameter", detail)
            return
        await self._app(scope, receive, send)
