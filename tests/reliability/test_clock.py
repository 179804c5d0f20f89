"""Clocks of servers jump: limits run on, keys mean what they meant, and nothing lasts less than nothing."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from api.http.protocol import idempotency
from tests.support.service.live import Live
from tests.support.service.planners import plan_on_request
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough

HOUR = 3600.0


class Clock:
    """A wall clock that can be set."""

    def __init__(self) -> None:
        self.offset_seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset_seconds


@pytest.fixture
def clocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Live, Clock, Path]]:
    """A service whose solves wait for a file, and the clock of solves and keys in it."""
    leave_in(tmp_path)
    clock = Clock()
    monkeypatch.setattr(idempotency, "time", SimpleNamespace(time=clock))
    with Live.of(tmp_path, plan=plan_on_request) as live:
        solves = live.app.state.services.solves
        for owner in (solves, solves._runner):  # noqa: SLF001
            object.__setattr__(owner, "_clock", clock)
        yield live, clock, tmp_path / "go"


def seconds(time_of: object) -> float:
    return datetime.fromisoformat(str(time_of)).timestamp()


@thorough
@pytest.mark.parametrize("jump_seconds", [HOUR, -2 * HOUR])
def test_a_solve_outlives_a_jump_of_the_clock(clocked: tuple[Live, Clock, Path], jump_seconds: float) -> None:
    live, clock, go = clocked
    deadline = datetime.fromtimestamp(time.time() + 600).astimezone().isoformat()
    answer = live.post("/v1/solves", tiny(), params={"deadline": deadline})
    where = answer.headers["location"]
    while live.get(where).json()["state"] == "queued":
        time.sleep(0.02)
    waiting = live.post("/v1/solves", tiny(name="waits")).headers["location"]
    clock.offset_seconds = jump_seconds
    time.sleep(0.7)  # longer than it takes a runner to look at its solve
    assert live.get(where).json()["state"] == "running"
    go.touch()
    for solve in (live.get(f"{where}?wait=30").json(), live.get(f"{waiting}?wait=30").json()):
        assert solve["state"] == "succeeded"
        assert seconds(solve["created_at"]) <= seconds(solve["started_at"]) <= seconds(solve["ended_at"])
    events = live.get(f"{where}/events").text
    assert '"at_seconds":-' not in events


@thorough
@pytest.mark.parametrize("jump_seconds", [23 * HOUR, -2 * HOUR])
def test_a_key_means_the_same_after_a_jump(clocked: tuple[Live, Clock, Path], jump_seconds: float) -> None:
    live, clock, go = clocked
    go.touch()
    key = {"Idempotency-Key": "jumped"}
    first = live.post("/v1/solves?fresh=true", tiny(name="keyed"), headers=key).headers["location"]
    clock.offset_seconds = jump_seconds
    again = live.post("/v1/solves?fresh=true", tiny(name="keyed"), headers=key)
    assert again.headers["location"] == first
    assert_problem(live.post("/v1/solves?fresh=true", tiny(name="other"), headers=key), 422, "key-reused")


def test_a_key_is_forgotten_after_a_day(clocked: tuple[Live, Clock, Path]) -> None:
    live, clock, go = clocked
    go.touch()
    key = {"Idempotency-Key": "old"}
    first = live.post("/v1/solves?fresh=true", tiny(name="keyed"), headers=key).headers["location"]
    clock.offset_seconds = 25 * HOUR
    again = live.post("/v1/solves?fresh=true", tiny(name="keyed"), headers=key)
    assert again.headers["location"] != first
