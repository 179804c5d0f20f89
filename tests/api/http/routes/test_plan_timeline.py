"""The timeline of a plan over HTTP: with sharding types, and equal to the plan's own seconds."""

import numpy as np
import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny

NOTHING = "sha256:" + "0" * 64


@pytest.fixture
def digest(live: Live) -> str:
    answer = live.post("/v1/solves", json=tiny(), headers={"Prefer": "wait=60"})
    return str(answer.json()["result"]["plan_digest"])


def test_a_timeline_ends_with_the_step_and_has_the_phases_of_every_rank(live: Live, digest: str) -> None:
    answer = live.get(f"/v1/plans/{digest}/timeline")
    assert answer.headers["x-plan-digest"] == digest
    timeline, plan = answer.json(), live.get(f"/v1/plans/{digest}").json()
    ends = [np.add(bar["start_seconds"], bar["duration_seconds"]).max() for bar in timeline["bars"]]
    assert max(ends) == pytest.approx(timeline["seconds"])
    assert timeline["seconds"] == pytest.approx(plan["objective"]["step_time_seconds"])
    assert timeline["num_ranks"] == plan["world_size"]
    for phase in plan["phases"]:
        own = np.zeros(plan["world_size"])
        for bar in timeline["bars"]:
            if bar["phase"] == phase["name"] and bar["kind"] == "phase":
                own += bar["duration_seconds"]
        stated = [rank["seconds"][phase["name"]] for rank in plan["ranks"]]
        assert not phase["counted"] or own.tolist() == pytest.approx(stated)
    kinds = {bar["kind"] for bar in timeline["bars"]}
    assert "sharding_type" in kinds
    assert "starts" not in kinds


def test_a_trace_has_the_same_bars(live: Live, digest: str) -> None:
    events = live.get(f"/v1/plans/{digest}/exports/chrome_trace").json()["traceEvents"]
    bars = live.get(f"/v1/plans/{digest}/timeline").json()["bars"]
    assert {event["name"] for event in events if event["ph"] == "X"} <= {bar["name"] for bar in bars}
    assert {event["cat"] for event in events if event["ph"] == "X"} == {bar["kind"] for bar in bars}


def test_a_plan_that_is_not_there(live: Live) -> None:
    assert_problem(live.get(f"/v1/plans/{NOTHING}/timeline"), 404, "not-found")
    assert_problem(live.get("/v1/plans/latest/timeline"), 400, "invalid-parameter")
