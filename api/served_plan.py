"""Answers with a plan: encoding, ETag and the short answer to those who have it."""

from fastapi import Request, Response

from api.http_headers import choose_encoding, matches
from api.plan_cache import ServedPlan


def plan_response(request: Request, served: ServedPlan, *, plan_digest: str, cache_control: str) -> Response:
    """Return the bytes of a plan, or of a part of it, in the caller's encoding, or 304."""
    chosen = served.by_encoding[choose_encoding(request.headers.get("accept-encoding", ""))]
    headers = {
        "ETag": chosen.etag,
        "Cache-Control": cache_control,
        "Vary": "Accept-Encoding",
        "X-Plan-Digest": plan_digest,
    }
    if matches(request.headers.get("if-none-match", ""), chosen.etag):
        return Response(status_code=304, headers=headers)
    if chosen.encoding != "identity":
        headers["Content-Encoding"] = chosen.encoding
    headers["Content-Length"] = str(len(chosen.body))
    body = b"" if request.method == "HEAD" else chosen.body
    return Response(body, media_type="application/json", headers=headers)
