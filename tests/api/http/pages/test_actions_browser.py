"""What people do on the pages: ask for a plan, watch it come, stop it, follow it with a channel, go back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.domain.formats.units import format_seconds
from planner.output.exporters.registry import FORMATS
from tests.api.http.pages.conftest import Filled
from tests.support.service.browser import Browser
from tests.support.service.server import Server
from tests.support.service.specs import raw, tiny
from tests.support.thorough import thorough

pytestmark = pytest.mark.browser

BUTTON = "[...document.querySelectorAll('button')].find(button => button.textContent.startsWith('{}'))"


def click(browser: Browser, label: str) -> None:
    """Press a button by the keyboard."""
    button = BUTTON.format(label)
    browser.wait_for(f"!!{button} && !{button}.disabled")
    browser.run(f"{button}.focus()")
    browser.press("Enter", 13, "\r")


def write(browser: Browser, label: str, text: str) -> None:
    """Write into the field of a label."""
    browser.run(
        f"[...document.querySelectorAll('label')].find(label => label.textContent.startsWith('{label}'))"
        ".querySelector('input').focus()"
    )
    browser.call("Input.insertText", text=text)


@thorough
def test_the_example_is_planned_with_one_button(filled: Filled, browser: Browser) -> None:
    browser.open("/")
    click(browser, "Check it only")
    browser.wait_for("document.querySelector('main').innerText.includes('The spec may be solved: 3 tables')")
    shown = "document.querySelector('.callout.fine')"
    assert browser.run(f"getComputedStyle({shown}).backgroundColor") == "rgb(227, 243, 232)"  # good news
    browser.run(f"{shown}.querySelector('details').open = true")
    assert "min_partition" in browser.run(f"{shown}.textContent")
    click(browser, "Plan it")
    browser.wait_for("location.pathname.startsWith('/ui/solves/')")
    browser.wait_for("document.querySelector('h1')?.textContent === 'three-tables'")
    solve = browser.run("location.pathname.split('/').at(-1)")
    assert filled.server.client.get(f"/v1/solves/{solve}?wait=60").json()["state"] == "succeeded"
    browser.wait_for("[...document.querySelectorAll('a')].some(link => link.textContent === 'See the plan')")


def test_a_wrong_spec_is_reported_with_its_place(filled: Filled, browser: Browser) -> None:
    browser.open("/")
    browser.run("document.querySelector('textarea').focus(); document.querySelector('textarea').select()")
    browser.call("Input.insertText", text=raw(tiny(model__tables__0__num_embeddings=-1)).decode())
    click(browser, "Plan it")
    browser.wait_for("document.querySelector('.problem') !== null")
    assert "/model/tables/0/num_embeddings" in browser.text()
    assert browser.run("location.pathname") == "/"
    browser.run("document.querySelector('textarea').focus(); document.querySelector('textarea').select()")
    browser.call("Input.insertText", text="{")
    click(browser, "Check it only")
    browser.wait_for("!document.querySelector('main').innerText.includes('/model/tables/0')")
    browser.wait_for("document.querySelector('.problem') !== null")


def test_a_plan_is_exported_for_a_runtime_or_the_page_says_why_not(filled: Filled, browser: Browser) -> None:
    browser.open(f"/ui/plans/{filled.first}")
    browser.wait_for(f"!!{BUTTON.format('Export')}")
    labels = "[...document.querySelectorAll('label')].find(label => label.textContent.startsWith('Export for'))"
    offered = browser.run(f"[...{labels}.querySelectorAll('option')].map(option => option.value)")
    assert {"json", "chrome_trace", *offered} == set(FORMATS)
    click(browser, "Export")  # it does not say in which module its tables are
    browser.wait_for("document.querySelector('.problem') !== null")
    assert "module" in browser.run("document.querySelector('.problem').textContent")
    browser.run("URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }")
    write(browser, "Module in the model", "model.ebc")
    click(browser, "Export")
    browser.wait_for("window.saved !== undefined && document.querySelector('.problem') === null")
    assert list(json.loads(browser.run("window.saved.text()"))["plan"]) == ["model.ebc"]


def test_a_channel_is_pointed_and_rolled_back(filled: Filled, browser: Browser) -> None:
    client = filled.server.client
    browser.open(f"/ui/plans/{filled.first}")
    write(browser, "Point a channel here", "from/the/page")
    click(browser, "Point it here")
    browser.wait_for("document.querySelector('main').innerText.includes('points here now (version 1)')")
    assert client.get("/v1/channels/from/the/page").json()["plan_digest"] == filled.first
    browser.open("/ui/channels/from/the/page")
    write(browser, "Point it at another plan", filled.second)
    click(browser, "Point it there")
    browser.wait_for(f"!!{BUTTON.format('Roll back to version 1')}")
    assert client.get("/v1/channels/from/the/page").json()["plan_digest"] == filled.second
    browser.run("window.confirm = () => true")
    click(browser, "Roll back to version 1")
    browser.wait_for(f"!!{BUTTON.format('Roll back to version 2')}")
    channel = client.get("/v1/channels/from/the/page").json()
    assert (channel["version"], channel["plan_digest"]) == (3, filled.first)


def test_someone_else_s_change_is_not_lost(filled: Filled, browser: Browser) -> None:
    client = filled.server.client
    client.put("/v1/channels/shared", json={"plan_digest": filled.first}).raise_for_status()
    for digest in (filled.second, filled.first):
        etag = client.get("/v1/channels/shared").headers["etag"]
        client.put("/v1/channels/shared", json={"plan_digest": digest}, headers={"If-Match": etag}).raise_for_status()
        if digest == filled.second:
            browser.open("/ui/channels/shared")
    browser.run("window.confirm = () => true")
    click(browser, "Roll back to version 1")
    browser.wait_for("document.querySelector('.problem') !== null")
    assert "The channel is not what you expected" in browser.text()
    assert client.get("/v1/channels/shared").json()["version"] == 3


def test_a_table_is_found_by_its_name_and_a_plan_explained(filled: Filled, browser: Browser) -> None:
    browser.open(f"/ui/plans/{filled.first}")
    click(browser, "Explain this plan")
    browser.wait_for("document.querySelector('main').innerText.includes('What more hardware would buy')")
    reported = filled.server.client.get(f"/v1/plans/{filled.first}/explanation").json()
    shown = browser.text()
    for table in reported["tables"]:
        assert table["reason"] in shown


@pytest.fixture
def slow_server(root: Path, tmp_path: Path) -> Iterator[Server]:
    """A service that finds a plan at once and then never stops looking."""
    server = Server(root, tmp_path / "data", planner="plan_then_hang").wait_until_ready()
    yield server
    server.stop()


@thorough
def test_progress_is_shown_and_stated_while_a_solve_runs_and_it_can_be_stopped(
    slow_server: Server, tmp_path: Path
) -> None:
    spec = tiny(solver__time_limit_seconds=300)
    solve = slow_server.client.post("/v1/solves", json=spec).json()["id"]
    with Browser(tmp_path / "browser", f"http://127.0.0.1:{slow_server.port}") as browser:
        browser.resize(1400)
        browser.open(f"/ui/solves/{solve}")
        browser.wait_for("document.querySelector('main').innerText.includes('Best plan')")
        browser.wait_for("document.querySelector('.chart[data-drawn] canvas') !== null")
        progress = slow_server.client.get(f"/v1/solves/{solve}").json()["progress"]
        best = format_seconds(progress["incumbent_seconds"]).replace(" us", " µs")
        assert browser.run("document.querySelector('.figures .value').textContent") == best
        assert browser.run("document.querySelector('.badge').textContent") == "running"
        spoken = browser.run("document.querySelector('[aria-live=polite]').textContent")
        assert spoken.startswith(f"Best plan {best}, bound ")
        before = browser.run("document.querySelector('.figures > div:last-child .value').textContent")
        browser.wait_for(f"document.querySelector('.figures > div:last-child .value').textContent !== '{before}'")
        click(browser, "Stop, and keep the best plan")
        browser.wait_for("document.querySelector('.badge').textContent === 'cancelled'")
        browser.wait_for("document.querySelector('[aria-live=polite]').textContent === 'The solve is over: cancelled.'")
        browser.wait_for("[...document.querySelectorAll('a')].some(link => link.textContent === 'See the plan')")
        assert browser.complaints == []


def test_without_an_example_a_spec_can_be_pasted(filled: Filled, browser: Browser) -> None:
    browser.open("/ui/solves")
    browser.run(
        """(async () => {
          const main = document.querySelector('script[type=module]').src;
          const ask = globalThis.fetch;
          globalThis.refused = true;
          globalThis.fetch = (address, options) =>
            globalThis.refused && String(address).includes('/v1/examples')
              ? Promise.resolve(new Response('{"title": "Too many requests", "detail": "wait"}', { status: 429 }))
              : ask(address, options);
          const { overviewPage } = await import(main.replace('main.js', 'pages/overview.js'));
          const page = await overviewPage();
          document.getElementById('main').replaceChildren(...page.content.flat());
        })()"""
    )
    browser.wait_for("document.querySelector('main').innerText.includes('No example could be had')")
    assert "Loading an example" not in browser.text()
    assert "Too many requests" in browser.text()
    browser.run("document.querySelector('textarea').focus()")
    browser.call("Input.insertText", text=raw(tiny()).decode())
    click(browser, "Check it only")
    browser.wait_for("document.querySelector('main').innerText.includes('The spec may be solved')")
    browser.run("refused = false")
    click(browser, "Try again")
    browser.wait_for("document.querySelector('main').innerText.includes('Three tables on one host')")
    assert "No example could be had" not in browser.text()
    assert json.loads(browser.run("document.querySelector('textarea').value")) == tiny()  # nobody's work is lost


def test_an_example_that_cannot_be_had_is_reported(filled: Filled, browser: Browser) -> None:
    browser.open("/")
    choice = "document.querySelector('#submit .labelled select')"
    browser.wait_for(f"!!{choice}")
    before = browser.run("document.querySelector('textarea').value")
    browser.run("globalThis.fetch = () => Promise.reject(new TypeError('no network'))")
    browser.run(f"{choice}.selectedIndex = 1; {choice}.dispatchEvent(new Event('change'))")
    browser.wait_for("document.querySelector('main').innerText.includes('The server does not answer')")
    assert browser.run("document.querySelector('textarea').value") == before
