"""Rules of HTTP for headers as a whole: which there must be, which there may be once, and which are lists."""

from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.protocol.problem_response import refuse

_HOST = b"host"
#: Of two of these, a proxy may have looked at the one and this server at the other.
_SINGLE = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        _HOST,
        b"idempotency-key",
        b"last-event-id",
        b"traceparent",
        b"x-request-id",
    }
)
#: Lists, which may come in several lines (RFC 9110, section 5.3).
_LISTS = frozenset(
    {b"accept-encoding", b"content-encoding", b"expect", b"if-match", b"if-none-match", b"prefer", b"tracestate"}
)
_READ = _SINGLE | _LISTS


class HeaderRulesMiddleware:
    """Refuses requests without a host or with a header twice that must be single; makes one line of each list."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            names = [name for name, _ in scope["headers"] if name in _READ]
            # HTTP/1.0 has no such header (RFC 9112, section 3.2).
            if _HOST not in names and scope.get("http_version", "1.1") != "1.0":
                await refuse(scope, receive, send, "broken-request", "the request has no header Host")
                return
            if len(set(names)) != len(names):
                twice = next((name for name in names if name in _SINGLE and names.count(name) > 1), None)
                if twice is not None:
                    detail = f"the header {twice.decode().title()} is there more than once"
                    await refuse(scope, receive, send, "broken-request", detail)
                    return
                scope["headers"] = _joined(scope["headers"])
        await self._app(scope, receive, send)


def _joined(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers with one line for each list, in the place of its first one."""
    joined: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _LISTS:
            joined[name] = joined[name] + b", " + value if name in joined else value
    return [
        (name, value if name not in _LISTS else joined.pop(name))
        for name, value in headers
        if name not in _LISTS or name in joined
    ]
