"""Whom the server believes what it says of callers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from api.cli.service.run_server import server_config
from tests.support.service.live import settings_for

FORWARDED = {
    "X-Forwarded-For": "6.6.6.6, 9.9.9.9",
    "X-Forwarded-Proto": "https",
    "Forwarded": "for=7.7.7.7;proto=https",
}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with who the caller is taken for."""
    body = f"{scope['client'][0]} {scope['scheme']}".encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(folder: Path, **settings: object) -> Iterator[str]:
    server = uvicorn.Server(server_config(app, settings_for(folder, port=0, **settings)))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("trusted", [None, "", " ", "10.0.0.0/8, ::1", "127.0.0.2"])
def test_headers_of_other_peers_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: str | None
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    with serving(tmp_path, trusted_proxies=trusted) as url:
        assert httpx.get(url, headers=FORWARDED).text == "127.0.0.1 http"


@pytest.mark.parametrize(
    ("trusted", "caller"), [("127.0.0.1", "9.9.9.9"), ("9.9.9.9,10.0.0.0/8, 127.0.0.0/8", "6.6.6.6")]
)
def test_headers_of_trusted_proxies_name_the_caller(tmp_path: Path, trusted: str, caller: str) -> None:
    with serving(tmp_path, trusted_proxies=trusted) as url:
        assert httpx.get(url, headers=FORWARDED).text == f"{caller} https"


@pytest.mark.parametrize("listed", ["proxy.internal", "*", "10.0.0.1/8", "10.0.0.1;10.0.0.2", "10.0.0.0/33"])
def test_what_is_no_address_is_refused_at_the_start(tmp_path: Path, listed: str) -> None:
    with pytest.raises(ValidationError, match="trusted_proxies"):
        settings_for(tmp_path, trusted_proxies=listed)
