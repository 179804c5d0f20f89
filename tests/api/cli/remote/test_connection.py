"""What commands show to a service, and a service that does not answer."""

from functools import partial
from pathlib import Path

import httpx
import pytest

from api.cli.remote import connection
from api.client import PlannerClient
from tests.support.cli.run import Run


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """The requests that commands send to a service that refuses them."""
    sent = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(401, json={"title": "No key", "status": 401})

    monkeypatch.setattr(connection, "PlannerClient", partial(PlannerClient, transport=httpx.MockTransport(refuse)))
    return sent


@pytest.mark.parametrize("command", ["solves", "channels", "studies", "promote a/b " + "0" * 64, "rollback a/b"])
def test_every_command_shows_its_key(run: Run, requests: list[httpx.Request], tmp_path: Path, command: str) -> None:
    token = tmp_path / "token"
    token.write_text("shardplan_key\n")
    answer = run(*command.split(), "--server", "http://planner", "--token-file", token)
    assert (answer.code, answer.out) == (1, "")
    assert requests[0].headers["Authorization"] == "Bearer shardplan_key"
    assert "SHARDPLAN_TOKEN" in answer.err


def test_the_address_and_the_key_may_be_variables(
    run: Run, requests: list[httpx.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDPLAN_SERVER", "http://elsewhere:1234")
    monkeypatch.setenv("SHARDPLAN_TOKEN", "shardplan_other")
    run("solves", "--state", "running", "--limit", "3")
    assert str(requests[0].url) == "http://elsewhere:1234/v1/solves?page_size=3&state=running"
    assert requests[0].headers["Authorization"] == "Bearer shardplan_other"
    monkeypatch.delenv("SHARDPLAN_SERVER")
    run("solves")
    assert requests[1].url.host == "127.0.0.1"


def test_a_service_that_does_not_answer_is_trouble(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    transport = httpx.MockTransport(fail)
    monkeypatch.setattr(
        connection, "PlannerClient", partial(PlannerClient, transport=transport, sleep=lambda seconds: None)
    )
    answer = run("channels", "--server", "http://planner")
    assert answer.code == 4
    assert "no answer from http://planner/v1/channels" in answer.err


@pytest.mark.parametrize("command", ["solves show", "channels no/such command", "studies --limit 0"])
def test_what_is_no_command_shows_the_usage(run: Run, requests: list[httpx.Request], command: str) -> None:
    answer = run(*command.split())
    assert answer.code == 1
    assert "Usage: shardplan" in answer.err
    assert not requests
