"""Following a solve over HTTP."""

import json

import pytest

from tests.api.http.protocol.test_server_sent_events import parsed
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny


@pytest.fixture(scope="module")
def solve(live: Live) -> dict[str, object]:
    return live.solve(tiny(name="followed"))


def test_an_ended_solve_streams_what_it_found_and_its_document(live: Live, solve: dict[str, object]) -> None:
    answer = live.get(f"/v1/solves/{solve['id']}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    *progress, end = parsed(answer.content)
    assert [(name, number) for name, number, _ in progress] == [
        ("progress", str(number + 1)) for number in range(len(progress))
    ]
    last = progress[-1][2]
    assert set(last) == {"at_seconds", "incumbent_seconds", "bound_seconds", "relative_gap", "partitioner"}
    assert last["incumbent_seconds"] == solve["result"]["objective"]["seconds"]
    assert last["at_seconds"] > 0
    assert end == ("end", str(len(progress)), json.loads(live.get(f"/v1/solves/{solve['id']}").content))


def test_a_stream_goes_on_after_the_last_event_that_was_seen(live: Live, solve: dict[str, object]) -> None:
    url = f"/v1/solves/{solve['id']}/events"
    everything = parsed(live.get(url).content)
    assert parsed(live.get(url, headers={"Last-Event-ID": "1"}).content) == everything[1:]


def test_head_ends_at_once(live: Live, solve: dict[str, object]) -> None:
    answer = live.request("HEAD", f"/v1/solves/{solve['id']}/events")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_streams_that_cannot_be(live: Live, solve: dict[str, object]) -> None:
    assert_problem(live.get("/v1/solves/0123/events"), 404, "not-found")
    wrong = live.get(f"/v1/solves/{solve['id']}/events", headers={"Last-Event-ID": "last"})
    assert_problem(wrong, 400, "invalid-parameter")
    live.app.state.services.streams._listeners.number += 1024  # noqa: SLF001
    try:
        refused = live.get(f"/v1/solves/{solve['id']}/events")
    finally:
        live.app.state.services.streams._listeners.number -= 1024  # noqa: SLF001
    assert_problem(refused, 503, "too-many-listeners")
    assert int(refused.headers["retry-after"]) >= 1
