"""Solves whose turn on a Ray cluster comes late, or never: a stand-in for Ray says when it comes."""

import sys
import time
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace

import pytest

from api.execution.base import NotNow
from api.execution.processes.solve import SolveAnswer, SolveJob
from api.execution.ray import slot as ray_slot
from api.execution.ray import solve as ray_solve
from api.execution.ray.slot import RaySlot
from api.execution.ray.solve import RayJob, RayPlace, run_on_ray
from tests.support.service.planners import hang
from tests.support.waiting import PATIENCE_SECONDS

ANSWER = SolveAnswer(reason="FEASIBLE")


class Turn:
    """One call of the cluster: it begins after a while, and has an answer after another one. It has its own clock."""

    def __init__(self, begins_after: float, takes: float) -> None:
        self._pieces = iter([(begins_after, None), (begins_after + takes, ANSWER)])
        self._next = next(self._pieces)
        self.now = 0.0
        self.is_cancelled = False

    @property
    def is_ready(self) -> bool:
        return self.is_cancelled or self.now >= self._next[0]

    def __next__(self) -> object:
        if self.is_cancelled:
            raise StopIteration
        _, piece = self._next
        self._next = next(self._pieces, (float("inf"), None))
        return piece


class RayError(Exception):
    """What Ray raises."""


def ray_of(turn: Turn) -> object:
    """A module ``ray`` whose cluster has one turn to give."""

    def wait(turns: list[Turn], timeout: float) -> tuple[list[Turn], list[Turn]]:
        until = turns[0].now + timeout
        while not turns[0].is_ready and turns[0].now < until:
            turns[0].now += 0.01
        return (turns, []) if turns[0].is_ready else ([], turns)

    def cancel(turn: Turn, *, force: bool) -> None:
        assert force
        turn.is_cancelled = True

    remote = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda _job: turn))
    kinds = ("OutOfMemoryError", "RayTaskError")
    return SimpleNamespace(
        is_initialized=lambda: True,
        remote=lambda _function: remote,
        wait=wait,
        get=lambda piece: piece,
        cancel=cancel,
        exceptions=SimpleNamespace(RayError=RayError, **{name: type(name, (RayError,), {}) for name in kinds}),
    )


def run(
    turn: Turn, monkeypatch: pytest.MonkeyPatch, *, limit_seconds: float, seconds_left: float | None
) -> SolveAnswer:
    monkeypatch.setitem(sys.modules, "ray", ray_of(turn))
    monkeypatch.setattr(ray_solve, "time", SimpleNamespace(monotonic=lambda: turn.now))
    job = SolveJob(
        spec_bytes=b"{}",
        spec_digest="",
        assumptions=[],
        incumbent_file=Path("unused"),
        plan=hang,
        seconds_left=seconds_left,
    )
    return run_on_ray(RayJob(job=job, place=RayPlace(address="head:6379"), limit_seconds=limit_seconds))


def test_a_cancel_ends_a_solve_that_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_slot, "run_on_ray", wait_for_ever)
    place = RaySlot(RayPlace(address="head:6379"))
    try:
        job = SolveJob(spec_bytes=b"{}", spec_digest="", assumptions=[], incumbent_file=Path("unused"), plan=hang)
        work = place.solve(job, 60)
        time.sleep(0.5)
        assert work.cancel()
        assert isinstance(work.exception(timeout=PATIENCE_SECONDS), CancelledError)
    finally:
        place.discard()


def wait_for_ever(_wanted: RayJob) -> SolveAnswer:
    time.sleep(3600)
    return ANSWER


def test_a_solve_that_gets_no_processor_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Turn(begins_after=3600, takes=0)
    with pytest.raises(NotNow, match="no processor for it in time"):
        run(turn, monkeypatch, limit_seconds=60, seconds_left=0.5)
    assert 0.5 <= turn.now < 1.0
    assert turn.is_cancelled


def test_a_solve_that_gets_one_late_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Turn(begins_after=1.8, takes=3600)
    with pytest.raises(TimeoutError):
        run(turn, monkeypatch, limit_seconds=2.5, seconds_left=2.0)
    assert 2.5 <= turn.now < 4.0  # and not 2.5 s from its begin
    assert turn.is_cancelled


@pytest.mark.parametrize("seconds_left", [None, 60.0])
def test_the_limit_counts_from_the_begin(monkeypatch: pytest.MonkeyPatch, seconds_left: float | None) -> None:
    turn = Turn(begins_after=0.6, takes=0.3)
    assert run(turn, monkeypatch, limit_seconds=0.7, seconds_left=seconds_left) == ANSWER
    with pytest.raises(TimeoutError):
        run(Turn(begins_after=0.3, takes=3600), monkeypatch, limit_seconds=0.4, seconds_left=seconds_left)
