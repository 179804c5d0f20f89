"""Commands, run in the process of the tests."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from api.cli import main
from api.cli.remote import connection
from api.client import PlannerClient
from tests.support.cli.run import Answer, Run
from tests.support.service.live import Live


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command in this process."""

    def answer(*arguments: str | Path) -> Answer:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Answer(int(stop.value.code or 0), captured.out, captured.err)

    return answer


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A service that every command reaches, whatever the address."""
    with Live.of(tmp_path / "data") as live:
        reach(live, monkeypatch)
        yield live


def reach(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lead the client of commands to a service."""

    def answer(request: httpx.Request) -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
        received = live.send(sent)
        headers = [pair for pair in received.headers.multi_items() if pair[0] != "content-encoding"]
        return httpx.Response(received.status_code, headers=headers, content=received.content)

    client = partial(PlannerClient, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(connection, "PlannerClient", client)
