"""Answers with a plan: encoding, ETag and the short answer to those who have it.

One place puts them together, for the routes and for ``api.fetch_path`` in front of them.
"""

from dataclasses import dataclass

from fastapi import Request, Response

from api.http_headers import choose_encoding, matches
from api.plan_cache import ServedPlan

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
