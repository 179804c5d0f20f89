"""What computes for long is done a little at a time: whoever fetches a plan waits for a turn of each that runs."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from api.http.routes import solves
from api.http.services import MOST_COMPUTING
from tests.support.service.live import Live
from tests.support.service.specs import tiny
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def test_few_specs_are_checked_at_a_time_and_no_one_else_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, lock, go = 0, 0, threading.Lock(), threading.Event()
    check = solves.parse_spec

    def slow(*arguments: object) -> object:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait(timeout=PATIENCE_SECONDS)
        with lock:
            running -= 1
        return check(*arguments)

    monkeypatch.setattr(solves, "parse_spec", slow)
    with Live.of(tmp_path) as live, ThreadPoolExecutor(8) as clients:
        answers = [clients.submit(live.post, "/v1/solves", tiny(name=f"n{number}")) for number in range(8)]
        wait_until(lambda: running == MOST_COMPUTING)
        time.sleep(0.2)
        assert live.get("/v1/solves").json()["solves"] == []  # answered beside
        assert live.get("/v1/plans").status_code == 200
        go.set()
        assert {answer.result().status_code for answer in answers} <= {200, 202}
        assert most == MOST_COMPUTING
        assert live.num_solves() == 8
