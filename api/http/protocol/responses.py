"""Answers with a plan: encoding, ETag and the short answer to those who have it.

One place puts them together, for the routes and for ``api.http.middleware.cached_plan`` in front of them.
"""

import hashlib
from dataclasses import dataclass

from fastapi import Request, Response

from api.http.protocol.headers import choose_encoding
from api.schemas.base import Document
from api.services.plans.cache import ServedPlan
from api.services.preconditions import matches

#: A document under its digest never changes; what a channel points at does. Neither is for caches that callers share:
#: keys and tenants differ.
IMMUTABLE = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """An answer as it goes to the server: names of headers in lower case."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def plan_answer(
    served: ServedPlan, *, method: str, accept_encoding: str, if_none_match: str, plan_digest: str, cache_control: str
) -> PlanAnswer:
    """Return the bytes of a plan, or of a part of it, in the caller's encoding, or 304."""
    chosen = served.by_encoding[choose_encoding(accept_encoding)]
    headers = [
        (b"etag", chosen.etag.encode("latin-1")),
        (b"cache-control", cache_control.encode("latin-1")),
        (b"vary", b"Accept-Encoding"),
        (b"x-plan-digest", plan_digest.encode("latin-1")),
    ]
    if if_none_match and matches(if_none_match, chosen.etag):
        return PlanAnswer(304, headers, b"")
    if chosen.encoding != "identity":
        headers.append((b"content-encoding", chosen.encoding.encode("latin-1")))
    headers.append((b"content-length", b"%d" % len(chosen.body)))
    headers.append((b"content-type", b"application/json"))
    return PlanAnswer(200, headers, b"" if method == "HEAD" else chosen.body)


def plan_response(request: Request, served: ServedPlan, *, plan_digest: str, cache_control: str) -> Response:
    """Return the answer of a route."""
    answer = plan_answer(
        served,
        method=request.method,
        accept_encoding=request.headers.get("accept-encoding", ""),
        if_none_match=request.headers.get("if-none-match", ""),
        plan_digest=plan_digest,
        cache_control=cache_control,
    )
    response = Response(answer.body, status_code=answer.status)
    response.raw_headers = answer.headers
    return response


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


def not_stored(document: Document, status: int = 200) -> Response:
    """Answer with a document that no cache may keep."""
    headers = {"Cache-Control": "no-store"}
    return Response(document.model_dump_json(), status_code=status, media_type="application/json", headers=headers)
