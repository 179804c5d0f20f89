"""Answers that carry a strong ETag of their bytes, and the short answer to those who have them."""

import hashlib

from fastapi import Request, Response

from api.http_headers import matches


def etagged_response(
    request: Request, body: bytes, *, cache_control: str, headers: dict[str, str] | None = None
) -> Response:
    """Return a JSON document, or 304."""
    told = {
        **(headers or {}),
        "ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        "Cache-Control": cache_control,
    }
    if matches(request.headers.get("if-none-match", ""), told["ETag"]):
        return Response(status_code=304, headers=told)
    return Response(body, media_type="application/json", headers=told)
