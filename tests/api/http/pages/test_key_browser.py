"""Pages of a server that asks for keys: nothing without one, everything with one, and it can be forgotten."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Guarded:
    """A server that asks for keys, a key that may read and solve, and one that may do everything."""

    server: Server
    key: str
    admin: dict[str, str]  # as a header

    def key_with(self, *scopes: str) -> str:
        made = self.server.client.post("/v1/keys", json={"name": "made", "scopes": scopes}, headers=self.admin)
        return str(made.json()["key"])

    def point(self, channel: str, digest: str) -> None:
        """Point a channel, new or not, at a plan."""
        client, address = self.server.client, f"/v1/channels/{channel}"
        before = client.get(address)
        condition = {"If-Match": before.headers["etag"]} if before.status_code == 200 else {}
        client.put(address, json={"plan_digest": digest}, headers={**self.admin, **condition}).raise_for_status()


@pytest.fixture(scope="module")
def guarded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    database = Database.of_file(folder / "shardplan.sqlite")
    service = ApiKeyService(database.for_tenant(DEFAULT_TENANT))
    _, key = service.create("reader", ["read", "solve"], expires_in_seconds=None, by=LOCAL)
    _, admin = service.create("admin", ["admin"], expires_in_seconds=None, by=LOCAL)
    database.close()
    server = Server(root, folder, auth="keys", planner="plan_with_bounds").wait_until_ready()
    server.client.headers["Authorization"] = f"Bearer {key}"
    try:
        yield Guarded(server, key, {"Authorization": f"Bearer {admin}"})
    finally:
        server.stop()


@pytest.fixture
def browser(guarded: Guarded, tmp_path: Path) -> Iterator[Browser]:
    """A browser that knows no key yet."""
    with Browser(tmp_path, f"http://127.0.0.1:{guarded.server.port}") as browser:
        browser.resize(1200)
        yield browser


@thorough
def test_a_reader_shows_a_key_and_sees_everything(guarded: Guarded, browser: Browser) -> None:
    server, key = guarded.server, guarded.key
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


#: What pages have buttons and forms for, by the scope that it needs.
ACTIONS = {
    "solve": ("Ask for a plan", "Plan it", "Check it only", "Try again"),
    "promote": ("Point a channel here", "Point it here", "Point it there", "Roll back to version 1"),
}


@pytest.mark.parametrize("scopes", [("read",), pytest.param(("read", "solve"), marks=thorough), ("read", "promote")])
def test_what_the_key_does_not_reach_has_no_button(guarded: Guarded, browser: Browser, scopes: tuple[str, ...]) -> None:
    client, channel = guarded.server.client, "-".join(("offers", *scopes))
    for size in (8, 32):
        spec = tiny(name=channel, model__batch_size_per_rank=size)
        digest = client.post("/v1/solves", json=spec, headers={"Prefer": "wait=30"}).json()["result"]["plan_digest"]
        guarded.point(channel, digest)
    gone = client.post("/v1/solves", json=tiny(name=f"gone-{channel}")).json()["id"]
    client.post(f"/v1/solves/{gone}:cancel")
    browser.open("/ui/solves")
    write(browser, "Key", guarded.key_with(*scopes))
    click(browser, "Use it")
    browser.wait_for("document.querySelector('h1')?.textContent === 'Solves'")
    seen = ""
    for address in ("/", f"/ui/plans/{digest}", f"/ui/channels/{channel}", f"/ui/solves/{gone}"):
        browser.open(address)
        seen += browser.text()
    for scope, labels in ACTIONS.items():
        for label in labels:
            assert (label in seen) is (scope in scopes), label
    assert "promoted by" in seen  # who made a version is for every reader
