"""The report of a model as a browser without a network shows it: styled, whole, and with nothing refused or fetched."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.services.cost_models.report.html import report_page
from cost_models.learned.shipped import shipped_models
from tests.api.http.openapi.test_console_browser import CHROMIUM, FLAGS
from tests.support.service.browser import Browser
from tests.support.service.measured import model_document
from tests.support.service.server import Server
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

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
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return run.stdout, run.stderr.decode(errors="replace")


@thorough
def test_the_page_of_the_service_is_whole_under_its_policy(server: Server, tmp_path: Path) -> None:
    stored = server.client.post("/v1/cost-models", json={"document": model_document("browsed")}).json()
    url = f"http://127.0.0.1:{server.port}{stored['report_url']}"
    dom, message = browse(url, tmp_path, "--dump-dom", "--virtual-time-budget=5000")
    page = dom.decode()
    assert page.count("<svg") == 2
    assert page.rstrip().endswith("</html>")
    assert "browsed: a cost model of Test GPU" in page
    assert "Content Security Policy" not in message  # how Chromium reports what a policy refused


@thorough
@pytest.mark.parametrize("size", ["1200,1600", "500,1600"])
def test_the_file_is_drawn_with_its_own_style(tmp_path: Path, size: str) -> None:
    document = model_document("filed")
    (tmp_path / "report.html").write_text(report_page(document))
    picture = tmp_path / "report.png"
    _, message = browse(
        (tmp_path / "report.html").as_uri(), tmp_path, f"--window-size={size}", f"--screenshot={picture}"
    )
    assert "Content Security Policy" not in message
    unstyled = tmp_path / "unstyled.png"
    (tmp_path / "unstyled.html").write_text(report_page(document).replace(".point {", ".other {"))
    _, message = browse(
        (tmp_path / "unstyled.html").as_uri(), tmp_path, f"--window-size={size}", f"--screenshot={unstyled}"
    )
    assert "Content Security Policy" in message  # one byte of the style changed: its hash is another
    assert picture.read_bytes() != unstyled.read_bytes()


#: Of every text of a chart: its words, its size in pixels of the window, and whether it is whole within the chart.
TEXTS = """[...document.querySelectorAll('svg')].map((chart) => {
  const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
  const { left, right, top, bottom } = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('text')].map((text) => {
    const box = text.getBoundingClientRect();
    return {
      words: text.textContent,
      pixels: scale * parseFloat(getComputedStyle(text).fontSize),
      whole: box.left >= left - 1 && box.right <= right + 1 && box.top >= top - 1 && box.bottom <= bottom + 1,
      box: [box.left, box.right, box.top, box.bottom],
    };
  });
})"""


@thorough
@pytest.mark.parametrize("width", [1400, 600, 450, 360, 320])
def test_labels_of_charts_can_be_read_at_any_width(tmp_path: Path, width: int) -> None:
    report = tmp_path / "report.html"
    report.write_text(report_page(json.loads(shipped_models()["cpu-epyc"])))
    with Browser(tmp_path, "file://") as browser:
        browser.resize(width)
        browser.open(str(report))
        charts = browser.run(TEXTS)
    assert len(charts) == 4
    for texts in charts:
        assert [text for text in texts if text["pixels"] < 9 or not text["whole"]] == []
        overlaps = [
            (a["words"], b["words"])
            for i, a in enumerate(texts)
            for b in texts[i + 1 :]
            if min(a["box"][1], b["box"][1]) - max(a["box"][0], b["box"][0]) > 1
            and min(a["box"][3], b["box"][3]) - max(a["box"][2], b["box"][2]) > 3
        ]
        assert overlaps == []


@thorough
def test_the_page_of_the_service_leads_back_and_a_file_of_it_does_not(server: Server, tmp_path: Path) -> None:
    address = "/v1/cost-models/cpu-epyc@1/report"
    assert "<a " not in server.client.get(address).text
    assert server.client.get(address).headers["vary"].startswith("Accept")
    with Browser(tmp_path, f"http://127.0.0.1:{server.port}") as browser:
        browser.open(address)
        browser.run("document.querySelector('a').click()")
        browser.wait_for("location.pathname === '/ui/cost-models/cpu-epyc@1'")
        browser.wait_for("document.querySelector('h1')?.textContent === 'cpu-epyc@1'")
        assert [message for message in browser.complaints if "Security" in message] == []
