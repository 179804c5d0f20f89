"""The pages for people at ``/`` and under ``/ui``: all of it comes from this server, and nothing may leave it.

Every page is the same index page, whose scripts read the address and ask the HTTP API for what the page shows.
"""

from fastapi import FastAPI, Request, Response

from api.http.pages.files import ADDRESS, PageFile, page_files
from api.http.protocol.headers import choose_encoding
from api.services.errors import not_found
from api.services.preconditions import matches

#: Addresses that have a page; the scripts know them too (``assets/main.js``). All others under /ui are a 404.
ADDRESSES = (
    "/",
    "/ui/solves",
    "/ui/solves/{solve_id}",
    "/ui/plans",
    "/ui/plans/{digest}",
    "/ui/plans/{digest}/diff/{other}",
    "/ui/studies",
    "/ui/studies/{study_id}",
    "/ui/channels",
    "/ui/channels/{name:path}",
    "/ui/hardware-profiles",
    "/ui/hardware-profiles/{profile_id}",
    "/ui/cost-models",
    "/ui/cost-models/{model_id}",
)

#: Only this server's own files, nothing inline; and scripts may make markup of text nowhere (the one policy lets
#: through the empty string, with which the chart library clears its elements).
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types default"
)
_INDEX_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_FILE_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=31536000, immutable"}


def add_pages(app: FastAPI) -> None:
    async def page(request: Request) -> Response:
        return _answer(request, page_files().index, _INDEX_HEADERS)

    async def no_page(request: Request) -> Response:
        return _answer(request, page_files().index, _INDEX_HEADERS, status=404)

    async def asset(request: Request, digest: str, path: str) -> Response:
        found = page_files().by_path.get(path)
        if found is None or page_files().address != f"{ADDRESS}/{digest}":
            raise not_found("file of the pages; a server of another version had it, load the page again")
        return _answer(request, found, _FILE_HEADERS)

    methods = ["GET", "HEAD"]
    app.add_api_route(f"{ADDRESS}/{{digest}}/{{path:path}}", asset, methods=methods, include_in_schema=False)
    for address in ADDRESSES:
        app.add_api_route(address, page, methods=methods, include_in_schema=False)
    for address in ("/ui", "/ui/{rest:path}"):
        app.add_api_route(address, no_page, methods=methods, include_in_schema=False)


def _answer(request: Request, file: PageFile, headers: dict[str, str], *, status: int = 200) -> Response:
    chosen = file.by_encoding[choose_encoding(request.headers.get("accept-encoding", ""))]
    headers = {**headers, "ETag": chosen.etag, "Vary": "Accept-Encoding"}
    if status == 200 and matches(request.headers.get("if-none-match", ""), chosen.etag):
        return Response(status_code=304, headers=headers)
    if chosen.encoding != "identity":
        headers["Content-Encoding"] = chosen.encoding
    headers["Content-Length"] = str(len(chosen.body))
    body = b"" if request.method == "HEAD" else chosen.body
    return Response(body, status_code=status, media_type=file.media_type, headers=headers)
