"""Secrets are in no line of a log, however they were shown, whatever went wrong and however much is logged."""

import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from api.http.auth.keys.format import Key
from api.http.auth.keys.service import ApiKeyService
from api.store.access.audit import LOCAL
from api.store.database import Database
from api.store.tenants import DEFAULT_TENANT
from tests.support.service.server import Server
from tests.support.service.specs import TINY, tiny
from tests.support.thorough import thorough


@pytest.fixture(params=["json", "text"])
def server(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Server, str]]:
    """A server that tells all it can, and a key that may do everything."""
    with closing(Database.of_file(tmp_path / "shardplan.sqlite")) as database:
        _, key = ApiKeyService(database.for_tenant(DEFAULT_TENANT)).create(
            "all", ["admin"], expires_in_seconds=None, by=LOCAL
        )
    server = Server(
        root,
        tmp_path,
        auth="keys",
        log_level="debug",
        log_format=request.param,
        webhook_hosts="http://127.0.0.1:9",
        busy_timeout_seconds=0.2,
    ).wait_until_ready()
    yield server, key
    server.stop()


def use(server: Server, key: str, path: Path) -> list[str]:
    """Show keys in every way that somebody might, good and bad ones; return all secrets that were said."""
    client, made_up, encoded = server.client, Key.new().text, []
    shown = {"Authorization": f"Bearer {key}"}
    made = client.post("/v1/keys", json={"name": "made", "scopes": ["read"]}, headers=shown).raise_for_status().json()
    hook = client.post("/v1/webhooks", json={"name": "n", "url": "http://127.0.0.1:9/h"}, headers=shown)
    hook.raise_for_status()
    for text in (key, made["key"], made_up):
        for form in ("Bearer {}", "bearer  {}", "{}", "Basic {}", "Bearer {}x", "Bearer {},"):
            client.get("/v1/solves", headers={"Authorization": form.format(text)})
        user = base64.b64encode(f"user:{text}".encode()).decode()
        client.get("/v1/solves", headers={"Authorization": f"Basic {user}"})
        encoded.append(user)
        client.get(f"/v1/solves?key={text}")
        client.get(f"/v1/solves/{text}", headers=shown)
        client.get(f"/v1/channels/{text}/plan", headers=shown)
        client.get(f"/{text}")
        client.post("/v1/solves", json=tiny(name=text), headers={**shown, "Idempotency-Key": text})
        client.post("/v1/solves", content=f'{{"{text}": ', headers={**shown, "Content-Type": "application/json"})
        client.post("/v1/solves", json={text: text}, headers=shown)
        client.get("/v1/solves", headers={"Cookie": f"key={text}", "X-Api-Key": text, "Referer": f"http://x/{text}"})
    httpx.get(f"http://{made['key']}:{key}@127.0.0.1:{server.port}/v1/solves")
    # Statements fail while another program has the database, and while a table is gone.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert client.post("/v1/solves?fresh=true", json=TINY, headers=shown).status_code == 503
        connection.execute("ROLLBACK")
        connection.execute("ALTER TABLE api_keys RENAME TO elsewhere")
        another = Key.new().text
        answer = client.get("/v1/solves", headers={"Authorization": f"Bearer {another}"})
        assert answer.status_code == 503
        connection.execute("ALTER TABLE elsewhere RENAME TO api_keys")
    client.request("DELETE", f"/v1/keys/{made['id']}", headers=shown).raise_for_status()
    return [key, made["key"], made_up, another, hook.json()["secret"], *encoded]


@thorough
def test_no_secret_is_logged(server: tuple[Server, str], tmp_path: Path) -> None:
    serving, key = server
    secrets = use(serving, key, tmp_path / "shardplan.sqlite")
    message = serving.stop()
    assert message.count("/v1/solves") > 30  # it was logged what was asked
    assert "503" in message
    assert "the store failed" in message
    for text in secrets:
        secret = text.rpartition("_")[2]
        assert len(secret) > 20
        assert secret not in message
        assert secret[:12] not in message
