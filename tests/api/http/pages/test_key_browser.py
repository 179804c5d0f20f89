"""Pages of a server that asks for keys: nothing without one, everything with one, and it can be forgotten."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.http.auth.keys.service import ApiKeyService
from api.store.access.audit import LOCAL
from api.store.database import Database
from api.store.tenants import DEFAULT_TENANT
from tests.api.http.pages.test_actions_browser import click, write
from tests.support.service.browser import Browser
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import thorough

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def guarded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server that asks for keys, and one that may read and solve."""
    folder = tmp_path_factory.mktemp("guarded")
    database = Database.of_file(folder / "shardplan.sqlite")
    _, key = ApiKeyService(database.for_tenant(DEFAULT_TENANT)).create(
        "reader", ["read", "solve"], expires_in_seconds=None, by=LOCAL
    )
    database.close()
    server = Server(root, folder, auth="keys", planner="plan_with_bounds").wait_until_ready()
    server.client.headers["Authorization"] = f"Bearer {key}"
    try:
        yield server, key
    finally:
        server.stop()


@pytest.fixture
def browser(guarded: tuple[Server, str], tmp_path: Path) -> Iterator[Browser]:
    """A browser that knows no key yet."""
    with Browser(tmp_path, f"http://127.0.0.1:{guarded[0].port}") as browser:
        browser.resize(1200)
        yield browser


@thorough
def test_a_reader_shows_a_key_and_sees_everything(guarded: tuple[Server, str], browser: Browser) -> None:
    server, key = guarded
    browser.open("/ui/solves")
    assert browser.run("document.querySelector('h1').textContent") == "A key is needed"
    assert browser.run("document.activeElement.type") == "password"
    write(browser, "Key", "shardplan_wrong")
    click(browser, "Use it")
    browser.wait_for("document.querySelector('h1')?.textContent === 'The key is not accepted'")
    write(browser, "Key", key)
    click(browser, "Use it")
    browser.wait_for("document.querySelector('h1')?.textContent === 'Solves'")

    solve = server.client.post("/v1/solves", json=tiny(name="seen as it comes")).json()["id"]
    browser.open(f"/ui/solves/{solve}")  # its events come over a connection that shows the key
    browser.wait_for("[...document.querySelectorAll('a')].some(link => link.textContent === 'See the plan')")
    browser.wait_for("document.querySelectorAll('.chart[data-drawn]').length > 0")  # drawn of the events alone

    plan = server.client.get(f"/v1/solves/{solve}").json()["result"]["plan_digest"]
    browser.open(f"/ui/plans/{plan}")
    browser.run("URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }")
    browser.run("document.querySelector('main a[href^=\"/v1/plans/\"]').click()")
    browser.wait_for("window.saved !== undefined")
    assert json.loads(browser.run("window.saved.text()"))

    click(browser, "Forget the key")
    browser.wait_for("document.querySelector('h1')?.textContent === 'A key is needed'")
    assert browser.run("sessionStorage.length") == 0


@thorough
def test_what_the_key_does_not_reach_is_reported(guarded: tuple[Server, str], browser: Browser) -> None:
    browser.open("/")
    write(browser, "Key", guarded[1])
    click(browser, "Use it")
    browser.wait_for("!['A key is needed', undefined].includes(document.querySelector('h1')?.textContent)")
    solve = guarded[0].client.post("/v1/solves", json=tiny(), headers={"Prefer": "wait=30"}).json()
    browser.open(f"/ui/plans/{solve['result']['plan_digest']}")
    write(browser, "Point a channel here", "not/mine")
    click(browser, "Point it here")
    browser.wait_for("document.querySelector('.problem') !== null")
    assert "promote" in browser.text()
