"""HTTP clients whose requests for the end of a solve or a fit are repeated until it ends.

The service waits for a minute at most. On a busy machine a solve may take longer: tests that ask for its end then see
the state in between, and fail for no fault of the service.
"""

import re
import time

import anyio
import httpx

from tests.support.waiting import PATIENCE_SECONDS

_WAIT = re.compile(r"\bwait=(\d+)")
#: Requests that wait for less expect to see a solve that goes on.
_LEAST_WAIT_SECONDS = 10
_PAUSE_SECONDS = 0.1
_UNFINISHED = {"queued", "running", "fitting"}


def _next_look(request: httpx.Request, answer: httpx.Response) -> httpx.Request | None:
    """The request that waits on for what an answer shows unfinished; ``None`` if the answer is what was asked for."""
    wait = _WAIT.search(request.url.query.decode()) or _WAIT.search(request.headers.get("prefer", ""))
    if wait is None or int(wait[1]) < _LEAST_WAIT_SECONDS or answer.status_code not in (200, 202):
        return None
    document = answer.json()
    if not isinstance(document, dict) or document.get("state") not in _UNFINISHED:
        return None
    address = request.url.join(answer.headers.get("location", str(request.url)))
    headers = {name: value for name, value in request.headers.items() if name in ("host", "authorization")}
    return httpx.Request("GET", address, headers={**headers, "Prefer": "wait=60"}, extensions=request.extensions)


class PatientTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends a request, and looks again until what it waits for has ended."""

    def __init__(self, transport: httpx.BaseTransport | httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._transport.handle_request(request)
            answer.read()
            look = _next_look(request, answer)
            if look is None or time.monotonic() > deadline:
                return answer
            time.sleep(_PAUSE_SECONDS)
            request = look

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = await self._transport.handle_async_request(request)
            await answer.aread()
            look = _next_look(request, answer)
            if look is None or time.monotonic() > deadline:
                return answer
            await anyio.sleep(_PAUSE_SECONDS)
            request = look

    def close(self) -> None:
        self._transport.close()

    async def aclose(self) -> None:
        await self._transport.aclose()


def patient_client(base_url: str = "") -> httpx.Client:
    """A client of a service on this machine that waits for what has to come."""
    return httpx.Client(base_url=base_url, timeout=PATIENCE_SECONDS, transport=PatientTransport(httpx.HTTPTransport()))
