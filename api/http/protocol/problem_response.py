"""Refusals in front of the routes: a problem document, sent before anything reads the body."""

from collections.abc import Mapping

import anyio
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from api.http.protocol.problem_details import MEDIA_TYPE, RETRY_AFTER_SECONDS, problem_bytes
from api.observability.request_id import request_id_of
from api.schemas.error_kinds import ERROR_KINDS

#: After a refusal the rest of a body is read and thrown away for this long, so that the
#: caller, who may still be sending, sees the answer instead of a broken connection.
LINGER_SECONDS = 2.0


def closing_problem(
    code: str, detail: str, request_id: str, headers: Mapping[str, str] | None = None
) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a problem after which the connection is closed."""
    body, retry = problem_bytes(code, detail, request_id), {"retry-after": str(RETRY_AFTER_SECONDS)}
    sent = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "connection": "close",
        "cache-control": "no-store",
        **(retry if ERROR_KINDS[code].retryable else {}),
        **(headers or {}),
    }
    return sent, body


async def refuse(
    scope: Scope, receive: Receive, send: Send, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> None:
    """Answer at once, then let the sender finish for a moment, and close."""
    sent, body = closing_problem(code, detail, request_id_of(scope), headers)
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": ERROR_KINDS[code].status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if "expect" not in Headers(scope=scope):
        with anyio.move_on_after(LINGER_SECONDS):
            while (await receive()).get("more_body", False):
                pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})
