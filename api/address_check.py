"""Refuses addresses that no name here can have, before anything compares them with what is stored."""

from starlette.types import ASGIApp, Receive, Scope, Send

from api.refusal import refuse

_NUL = b"%00"


class AddressCheckMiddleware:
    """Refuses NUL in a path or query: PostgreSQL cannot even be asked for such a text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass every other request on."""
        if scope["type"] == "http" and ("\x00" in scope["path"] or _NUL in scope["query_string"]):
            await refuse(scope, receive, send, "invalid-parameter", "the path or the query holds a NUL character")
            return
        await self._app(scope, receive, send)
