"""Studies over HTTP: submit, look, points, front, cancel, delete, refuse."""

from typing import Any

import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny


def sweep(**fields: object) -> dict[str, Any]:
    axes = [
        {"field": "hardware.num_hosts", "values": [1, 2]},
        {"field": "model.batch_size_per_rank", "values": [64, 128]},
    ]
    return {"kind": "sweep", "name": "a sweep", "spec": tiny(), "axes": axes, **fields}


def run(live: Live, document: object) -> dict[str, Any]:
    answer = live.post("/v1/studies", document, headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_sweep_ends_with_a_plan_for_every_point_and_a_front(live: Live) -> None:
    study = run(live, sweep())
    assert study["state"] == "succeeded"
    assert study["progress"] == {"num_points": 4, "num_ended": 4}
    points = live.get(f"/v1/studies/{study['id']}/points").json()["points"]
    assert [point["key"] for point in points] == ["1/64", "2/64", "1/128", "2/128"]
    for point in points:
        plan = live.get(f"/v1/plans/{point['plan_digest']}").json()
        assert point["objective_seconds"] == plan["objective"]["seconds"]
        assert point["figures"]["step_seconds"] >= point["at_best"]["step_seconds"] > 0
        solve = live.get(f"/v1/solves/{point['solve_id']}").json()
        assert f"study={study['id']}" in solve["tags"]
    front = live.get(f"/v1/studies/{study['id']}/front").json()
    assert front == study["answer"]["front"]
    assert {one["standing"] for one in front["points"]} <= {"front", "dominated", "undecided"}
    listed = live.get("/v1/studies").json()["studies"]
    assert listed[0]["id"] == study["id"]
    assert listed[0]["answer"] is None


def test_a_point_has_the_bound_and_the_limit_of_its_own_solve(live: Live) -> None:
    spec = tiny(name="two searches", solver__partitioner="greedy")
    axes = [{"field": "solver.cutoff_seconds", "values": [1.0, 1e-9]}]  # the second ends with its first plan
    study = run(live, sweep(name="searches", spec=spec, axes=axes, prune=False))
    points = live.get(f"/v1/studies/{study['id']}/points").json()["points"]
    results = [live.get(f"/v1/solves/{point['solve_id']}").json()["result"] for point in points]
    assert len({result["plan_digest"] for result in results}) == 1  # which one of the solves has published
    assert (
        len({result["termination"]["limit"] for result in results}) == 2
        or len({result["lower_bound_seconds"] for result in results}) == 2
    )
    for point, result in zip(points, results, strict=True):
        assert point["limit"] == result["termination"]["limit"]
        assert point["lower_bound_seconds"] == result["lower_bound_seconds"]


def test_one_point_that_cannot_be_planned_stops_no_other(live: Live) -> None:
    axes = [{"field": "global_batch_size", "values": [128, 129]}]
    study = run(live, sweep(axes=axes))
    good, odd = live.get(f"/v1/studies/{study['id']}/points").json()["points"]
    assert good["state"] == "planned"
    assert odd["state"] == "invalid"
    assert "129 samples is no multiple" in odd["issues"][0]["message"]


def test_a_spec_that_no_point_can_be_made_of_is_refused_with_its_pointers(live: Live) -> None:
    answer = live.post("/v1/studies", sweep(spec=tiny(model__tables__0__num_embeddings=-1)))
    problem = assert_problem(answer, 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/spec/model/tables/0/num_embeddings"
    answer = live.post("/v1/studies", sweep(axes=[{"field": "hardware.num_hsts", "values": [1]}]))
    problem = assert_problem(answer, 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/spec/hardware/num_hsts"
    assert "num_hosts" in problem["errors"][0]["hint"]


def test_a_key_asks_for_one_study(live: Live) -> None:
    headers = {"Idempotency-Key": "once"}
    ids = {live.post("/v1/studies", sweep(name="keyed"), headers=headers).json()["id"] for _ in range(2)}
    assert len(ids) == 1


def test_studies_are_deleted_once_they_have_ended_and_plans_stay(live: Live) -> None:
    study = run(live, sweep(name="deleted"))
    point = live.get(f"/v1/studies/{study['id']}/points").json()["points"][0]
    assert live.request("DELETE", f"/v1/studies/{study['id']}").status_code == 204
    assert_problem(live.get(f"/v1/studies/{study['id']}"), 404, "not-found")
    assert live.get(f"/v1/plans/{point['plan_digest']}").status_code == 200


@pytest.mark.parametrize("address", ["", "/points", "/front"])
def test_an_unknown_study_is_not_found(live: Live, address: str) -> None:
    assert_problem(live.get(f"/v1/studies/{'0' * 28}{address}"), 404, "not-found")


def test_one_plan_for_scenarios_has_an_answer(live: Live) -> None:
    factor = "model.tables.a.pooling_factor"
    document = {
        "kind": "scenarios",
        "spec": tiny(),
        "scenarios": [{"label": "day", "set": {factor: 40}}, {"label": "night", "set": {factor: 1}}],
        "num_rounds": 1,
    }
    study = run(live, document)
    assert study["state"] == "succeeded"
    points = live.get(f"/v1/studies/{study['id']}/points").json()["points"]
    assert [point["key"] for point in points] == [
        "own/day", "own/night", "mean", "largest", "together", "robust", "chosen",
    ]  # fmt: skip
    assert {point["state"] for point in points} == {"planned", "compared"}
    answer = study["answer"]
    assert live.get(f"/v1/plans/{answer['plan']['plan_digest']}").status_code == 200
    assert 0 < answer["lower_bound"] <= answer["plan"]["cost"]
    assert live.get(f"/v1/studies/{study['id']}/front").status_code == 404
