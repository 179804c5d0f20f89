"""Answers of routes: JSON documents, 304 for a caller that has the document, plans in the caller's encoding.

Answers with a plan are put together here for the routes, and for ``api.http.middleware.cached_plan`` in front of them.
"""

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import zstandard
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from api.http.protocol.headers import choose_encoding
from api.schemas.base import Document
from api.services.plans.cache import ServedPlan
from api.services.preconditions import matches

#: A document under its digest never changes; what a channel points at does. Neither is for caches that callers share:
#: keys and tenants differ.
IMMUTABLE = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"
_STREAM_ZSTD_LEVEL, _STREAM_GZIP_LEVEL = 1, 1
_GZIP_WRAPPER = 16  # zlib: a gzip header and trailer around the compressed bytes


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


def plan_response(
    request: Request, served: ServedPlan, *, if_none_match: str, plan_digest: str, cache_control: str
) -> Response:
    answer = plan_answer(
        served,
        method=request.method,
        accept_encoding=request.headers.get("accept-encoding", ""),
        if_none_match=if_none_match,
        plan_digest=plan_digest,
        cache_control=cache_control,
    )
    response = Response(answer.body, status_code=answer.status)
    response.raw_headers = answer.headers
    return response


def streamed_response(
    request: Request, parts: Iterator[bytes], *, name: str, if_none_match: str, plan_digest: str, cache_control: str
) -> Response:
    """Return a plan that is written while it is sent, in the caller's encoding, or 304.

    ``name`` is that of the bytes: it stands for their hash in the ETag.
    """
    encoding = choose_encoding(request.headers.get("accept-encoding", ""))
    etag = f'"{name}"' if encoding == "identity" else f'"{name}-{encoding}"'
    headers = {"ETag": etag, "Cache-Control": cache_control, "Vary": "Accept-Encoding", "X-Plan-Digest": plan_digest}
    if matches(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    if encoding != "identity":
        headers["Content-Encoding"] = encoding
    sent = iter(()) if request.method == "HEAD" else _encoded(parts, encoding)  # neither states a length
    return StreamingResponse(sent, headers=headers, media_type="application/json")


def _encoded(parts: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Compress parts as they come, at levels at which that takes less time than the network."""
    if encoding == "identity":
        yield from parts
        return
    if encoding == "zstd":
        compressor: Any = zstandard.ZstdCompressor(level=_STREAM_ZSTD_LEVEL).compressobj()
    else:
        compressor = zlib.compressobj(_STREAM_GZIP_LEVEL, wbits=zlib.MAX_WBITS | _GZIP_WRAPPER)
    for part in parts:
        if compressed := compressor.compress(part):
            yield compressed
    yield compressor.flush()


def etag_of_digest(digest: str) -> str:
    """Return the ETag of a document that is known by its digest."""
    return f'"{digest.removeprefix("sha256:")[:32]}"'


def etagged_response(
    if_none_match: str,
    content: Document | bytes,
    *,
    cache_control: str,
    etag: str = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a JSON document, or 304 to a caller that has it; its ETag is that of its bytes where none is given."""
    body = content.model_dump_json().encode() if isinstance(content, Document) else content
    etag = etag or etag_of_digest(hashlib.sha256(body).hexdigest())
    headers = {**(headers or {}), "ETag": etag, "Cache-Control": cache_control}
    if matches(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def json_response(document: Document, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(document.model_dump_json(), status_code=status, media_type="application/json", headers=headers)


def not_stored(document: Document, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a document that no cache may keep."""
    return json_response(document, status, {"Cache-Control": "no-store", **(headers or {})})
