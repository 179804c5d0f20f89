"""The console as a browser without a network shows it."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.service.server import Server
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.browser

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # nothing but this machine has a name
)


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(root, tmp_path).wait_until_ready()
    yield server
    server.stop()


@thorough
def test_the_console_renders_every_route_with_no_network(server: Server, tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium found")
    page = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            f"http://127.0.0.1:{server.port}/docs",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    ).stdout
    paths = server.client.get("/openapi.json").json()["paths"]
    assert len(paths) > 10
    for path in paths:
        assert f'data-path="{path}"' in page
