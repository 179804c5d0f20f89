"""Studies survive kills: one that was cut off at random ends as one that was not."""

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

STUDY = {
    "kind": "sweep",
    "spec": tiny(solver__time_limit_seconds=600),  # a busy machine must cut off no bound
    "axes": [
        {"field": "hardware.num_hosts", "values": [1, 2, 4]},
        {"field": "model.batch_size_per_rank", "values": [16, 32, 64, 128]},
    ],
}
#: Its plans are compared in a process of the server, which a kill takes along.
SCENARIOS = {
    "kind": "scenarios",
    "spec": tiny(),
    "scenarios": [
        {"label": "day", "set": {"model.tables.a.pooling_factor": 40}},
        {"label": "night", "set": {"model.tables.a.pooling_factor": 1}},
    ],
    "num_rounds": 2,
}
#: What a study ends with, whatever happened on its way.
SAME = ("key", "labels", "state", "plan_digest", "objective_seconds", "lower_bound_seconds", "figures", "at_best")


def ended(server: Server, study_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        study = server.client.get(f"/v1/studies/{study_id}?wait=30").json()
        if study["state"] not in ("queued", "running"):
            return study
    raise AssertionError("the study did not end")


def result(server: Server, study_id: str) -> tuple[object, list[dict[str, Any]]]:
    study = ended(server, study_id)
    assert study["state"] == "succeeded", study
    points = server.client.get(f"/v1/studies/{study_id}/points").json()["points"]
    return study["answer"], [{name: point.get(name) for name in SAME} for point in points]


@pytest.mark.parametrize(
    "study", [pytest.param(STUDY, marks=thorough, id="sweep"), pytest.param(SCENARIOS, id="scenarios")]
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=thorough) for seed in range(1, 6))])
def test_a_study_that_was_killed_ends_as_one_that_was_not(
    root: Path, tmp_path: Path, seed: int, study: dict[str, object]
) -> None:
    quiet = Server(root, tmp_path / "quiet").wait_until_ready()
    expected = result(quiet, quiet.client.post("/v1/studies", json=study).json()["id"])
    quiet.stop()
    chance = random.Random(seed)
    server = Server(root, tmp_path / "killed").wait_until_ready()
    study_id = server.client.post("/v1/studies", json=study).json()["id"]
    for _ in range(3):
        time.sleep(chance.uniform(0.0, 1.5))
        server.stop(signal.SIGKILL)
        server = Server(root, tmp_path / "killed").wait_until_ready()
    assert result(server, study_id) == expected
    server.stop()
