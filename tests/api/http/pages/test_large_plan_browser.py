"""A plan of 1,000 tables on 128 ranks is drawn, and can be read."""

from pathlib import Path

import pytest

from tests.api.http.pages.conftest import solved
from tests.support.service.browser import Browser
from tests.support.service.server import Server
from tests.support.thorough import thorough

pytestmark = [pytest.mark.browser]


def large_spec() -> dict[str, object]:
    """Tables from a thousand rows to millions, on sixteen hosts."""
    tables = [
        {
            "name": f"table_{i:04d}",
            "num_embeddings": 1000 + 7919 * i * (i % 13 + 1),
            "embedding_dim": (16, 32, 64, 128)[i % 4],
            "pooling_factor": 1.0 + i % 29,
        }
        for i in range(1000)
    ]
    return {
        "name": "large",
        "model": {"batch_size_per_rank": 1024, "tables": tables},
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": 16, "ranks_per_host": 8},
        "solver": {"partitioner": "greedy", "time_limit_seconds": 30},
    }


@thorough
def test_a_large_plan_is_drawn(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path / "data").wait_until_ready()
    try:
        digest = solved(server, large_spec())["result"]["plan_digest"]
        with Browser(tmp_path / "browser", f"http://127.0.0.1:{server.port}") as browser:
            browser.resize(1400)
            browser.open(f"/ui/plans/{digest}")
            assert browser.run("document.querySelectorAll('.chart[data-drawn] canvas').length") == 4
            browser.run("document.querySelectorAll('figure details').forEach(details => { details.open = true; })")
            ranks = "[...document.querySelectorAll('table')].filter(table => table.tBodies[0].rows.length === 128)"
            browser.wait_for(f"{ranks}.length === 2")  # seconds, and bytes of one memory
            browser.run(
                "(() => { const choice = [...document.querySelectorAll('select')]"
                ".find(select => [...select.options].some(option => option.textContent.startsWith('the rank')));"
                " choice.value = 'rank'; choice.dispatchEvent(new Event('change')); })()"
            )
            listed = "[...document.querySelectorAll('caption')].find(c => c.textContent.startsWith('Tables, '))"
            rows = f"{listed}.parentElement.tBodies[0].rows"
            assert browser.run(f"{rows}.length") == 12
            browser.run("document.querySelector('input[type=search]').focus()")
            browser.call("Input.insertText", text="table_0123")
            browser.wait_for(f"{rows}.length === 1 && {rows}[0].cells[0].textContent === 'table_0123'")
            assert browser.complaints == []
            browser.resize(320)
            browser.wait_for("document.documentElement.scrollWidth <= 320")
    finally:
        server.stop()
