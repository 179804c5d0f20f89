"""``shardplan webhooks``, on the database of a service."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from api.store.database import Database
from api.store.tenants import DEFAULT_TENANT
from tests.api.cli.admin.test_keys import shardplan
from tests.support.thorough import thorough

HOSTS = {"SHARDPLAN_WEBHOOK_HOSTS": "hooks.test"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Database.of_file(tmp_path / "shardplan.sqlite").close()
    return tmp_path


@thorough
def test_a_webhook_is_added_listed_enabled_and_deleted(folder: Path) -> None:
    made = shardplan(
        "webhooks", "create", "https://hooks.test/x", "--name", "n", "--event", "solve.failed", folder=folder, **HOSTS
    )
    assert made.returncode == 0, made.stderr
    hook = json.loads(made.stdout)
    assert hook["secret"].startswith("whsec_")
    assert hook["events"] == ["solve.failed"]
    listed = shardplan("webhooks", "list", folder=folder)
    (one,) = json.loads(listed.stdout)["webhooks"]
    assert one == {key: value for key, value in hook.items() if key != "secret"}
    enabled = shardplan("webhooks", "enable", hook["id"], folder=folder)
    assert json.loads(enabled.stdout)["state"] == "active"
    assert shardplan("webhooks", "delete", hook["id"], folder=folder).returncode == 0
    with closing(Database.of_file(folder / "shardplan.sqlite")) as database:
        store = database.for_tenant(DEFAULT_TENANT)
        assert store.webhooks() == []
        trail = store.audit(limit=9, before=None, subject=f"webhooks/{hook['id']}")
        assert [entry.action for entry in trail] == ["webhook.delete", "webhook.create"]


@thorough
@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["create", "https://other.test/", "--name", "n"], "SHARDPLAN_WEBHOOK_HOSTS"),
        (["create", "https://hooks.test/", "--name", "n", "--event", "solve.begun"], "solve.cancelled"),
        (["create", "https://hooks.test/", "--name", ""], "--name"),
        (["enable", "wh_none"], "no webhook"),
        (["delete", "wh_none"], "no webhook"),
    ],
)
def test_what_cannot_be_done_is_reported_with_the_way_out(folder: Path, arguments: list[str], reported: str) -> None:
    answer = shardplan("webhooks", *arguments, folder=folder, **HOSTS)
    assert answer.returncode == 1
    assert reported in answer.stderr
    assert "Traceback" not in answer.stderr


@thorough
def test_a_folder_without_a_database(tmp_path: Path) -> None:
    answer = shardplan("webhooks", "list", folder=tmp_path)
    assert (answer.returncode, "no database" in answer.stderr) == (1, True)
