"""The report of a model as a browser without a network shows it: styled, whole, and with nothing refused or fetched."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.model_report import report_page
from tests.api.measured import model_document
from tests.api.server import Server
from tests.api.test_console_browser import CHROMIUM, FLAGS

pytestmark = pytest.mark.browser


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(root, tmp_path).wait_until_ready()
    yield server
    server.stop()


def browse(url: str, tmp_path: Path, *flags: str) -> tuple[bytes, str]:
    """Return what Chromium writes to its output, and what it says of the page."""
    if CHROMIUM is None:
        pytest.skip("no Chromium found")
    run = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--enable-logging=stderr",
            "--v=0",
            *flags,
            url,
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    return run.stdout, run.stderr.decode(errors="replace")


def test_the_page_of_the_service_is_whole_under_its_policy(server: Server, tmp_path: Path) -> None:
    stored = server.client.post("/v1/cost-models", json={"document": model_document("browsed")}).json()
    url = f"http://127.0.0.1:{server.port}{stored['report_url']}"
    dom, said = browse(url, tmp_path, "--dump-dom", "--virtual-time-budget=5000")
    page = dom.decode()
    assert page.count("<svg") == 2
    assert page.rstrip().endswith("</html>")
    assert "browsed: a cost model of Test GPU" in page
    assert "Content Security Policy" not in said  # how Chromium reports what a policy refused


@pytest.mark.parametrize("size", ["1200,1600", "500,1600"])
def test_the_file_is_drawn_with_its_own_style(tmp_path: Path, size: str) -> None:
    document = model_document("filed")
    (tmp_path / "report.html").write_text(report_page(document))
    picture = tmp_path / "report.png"
    _, said = browse((tmp_path / "report.html").as_uri(), tmp_path, f"--window-size={size}", f"--screenshot={picture}")
    assert "Content Security Policy" not in said
    unstyled = tmp_path / "unstyled.png"
    (tmp_path / "unstyled.html").write_text(report_page(document).replace(".point {", ".other {"))
    _, said = browse(
        (tmp_path / "unstyled.html").as_uri(), tmp_path, f"--window-size={size}", f"--screenshot={unstyled}"
    )
    assert "Content Security Policy" in said  # one byte of the style changed: its hash is another
    assert picture.read_bytes() != unstyled.read_bytes()
