"""What the server program can do at most: an ASGI application that answers with given bytes, and nothing else.

Run by ``fetch_path.py`` under uvicorn, with the body in the file that ``BARE_BODY`` names. ``/304`` answers without it.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

_BODY = Path(os.environ["BARE_BODY"]).read_bytes() if "BARE_BODY" in os.environ else b""
_LENGTH = (b"content-length", b"%d" % len(_BODY))


async def app(scope: Mapping[str, Any], _receive: object, send: Send) -> None:
    """Answer."""
    if scope["path"] == "/304":
        await send({"type": "http.response.start", "status": 304, "headers": [(b"etag", b'"x"')]})
        await send({"type": "http.response.body", "body": b""})
    else:
        headers = [(b"content-type", b"application/json"), _LENGTH]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _BODY})
