"""Fits that are stopped, cut off, or go wrong; and how many wait."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.support.service import fits
from tests.support.service.live import Live
from tests.support.service.posted import store_rows
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@thorough
def test_a_fit_is_stopped_and_its_process_is_gone(tmp_path: Path) -> None:
    leave_in(tmp_path)
    with Live.of(tmp_path / "data", fit=fits.hang) as live:
        digest = store_rows(live)
        live.post("/v1/cost-models", {"name": "m", "measurements": [digest]})
        waiting = live.post("/v1/cost-models", {"name": "waits", "measurements": [digest]}).json()
        pid = _pid(tmp_path)
        for _ in range(2):
            stopped = live.post("/v1/cost-models/m@1:cancel").json()
            assert (stopped["state"], stopped["error"]["code"]) == ("failed", "cancelled")
        assert live.post(f"/v1/cost-models/{waiting['id']}:cancel").json()["state"] == "failed"
        _wait_for_end(pid)
        assert live.get("/readyz").status_code == 200


@thorough
def test_a_fit_that_the_server_left_begins_again(tmp_path: Path) -> None:
    leave_in(tmp_path)
    with Live.of(tmp_path / "data", fit=fits.hang) as live:
        live.post("/v1/cost-models", {"name": "m", "measurements": [store_rows(live)]})
        pid = _pid(tmp_path)
    _wait_for_end(pid)
    with Live.of(tmp_path / "data") as live:
        model = live.get("/v1/cost-models/m@1?wait=60").json()
        assert model["state"] == "ready"
        assert live.solve(tiny(cost_model="learned:m@1"))["state"] == "succeeded"


@thorough
@pytest.mark.parametrize(
    ("fit", "settings", "code", "hint"),
    [
        (fits.die, {}, "killed", "memory"),
        (fits.defect, {}, "internal", ""),
        (fits.hang, {"fit_limit_seconds": 1.0}, "time-limit", "fewer rows"),
        (fits.lack_torch, {}, "missing-extra", "pip install 'shardplan[train]'"),
    ],
)
def test_a_fit_that_goes_wrong_ends_with_the_reason(
    tmp_path: Path, fit: object, settings: dict[str, float], code: str, hint: str
) -> None:
    leave_in(tmp_path)
    with Live.of(tmp_path / "data", fit=fit, **settings) as live:
        request = {"name": "m", "measurements": [store_rows(live)]}
        model = live.post("/v1/cost-models", request, headers={"Prefer": "wait=60"}).json()
        assert (model["state"], model["error"]["code"]) == ("failed", code)
        assert hint in model["error"]["hint"]
        assert "must not leave" not in json.dumps(model)


@thorough
def test_only_so_many_fits_wait(tmp_path: Path) -> None:
    leave_in(tmp_path)
    with Live.of(tmp_path / "data", fit=fits.hang, max_queued_fits=1) as live:
        request = {"name": "m", "measurements": [store_rows(live)]}
        live.post("/v1/cost-models", request)
        full = live.post("/v1/cost-models", request)
        assert_problem(full, 503, "queue-full")
        assert full.headers["retry-after"]


def _pid(folder: Path) -> int:
    wait_until(lambda: (folder / "pid").exists())
    return int((folder / "pid").read_text())


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


@thorough
def test_a_fit_has_room_under_the_least_limit_of_memory(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with Live.of(tmp_path / "data", fit=fits.load_torch, fit_memory_bytes=2 * 1024**3) as live:
        request = {"name": "m", "measurements": [store_rows(live)]}
        model = live.post("/v1/cost-models", request, headers={"Prefer": "wait=60"}).json()
        assert model["state"] == "ready", model
