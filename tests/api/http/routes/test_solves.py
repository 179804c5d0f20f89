"""Submitting, looking, waiting, listing, validating."""

import json
import threading

import pytest

from api.http.routes.examples import SPECS
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny

JSON = {"Content-Type": "application/json"}


def test_a_submission_is_accepted_with_a_place_to_look(live: Live) -> None:
    answer = live.post("/v1/solves", tiny(name="accepted"))
    assert answer.status_code == 202
    assert int(answer.headers["retry-after"]) >= 1
    solve = live.get(f"{answer.headers['location']}?wait=30")
    assert solve.status_code == 200
    assert solve.json()["state"] == "succeeded"
    assert solve.json()["id"] == answer.json()["id"]


def test_waiting_answers_with_the_result(live: Live) -> None:
    answer = live.post("/v1/solves", tiny(name="waited"), headers={"Prefer": "wait=30"})
    assert answer.status_code == 200
    assert answer.headers["preference-applied"] == "wait=30"
    solve = answer.json()
    result = solve["result"]
    assert result["termination"]["reason"] in ("OPTIMAL", "FEASIBLE")
    assert result["plan_url"] == f"/v1/plans/{result['plan_digest']}"
    assert result["objective"]["seconds"] >= result["lower_bound_seconds"] > 0
    assert solve["created_at"] <= solve["started_at"] <= solve["ended_at"]
    assert solve["progress"]["incumbent_seconds"] == result["objective"]["seconds"]
    assert {"model.pipeline", "hardware.hbm_bytes"} <= {item["subject"] for item in solve["assumptions"]}


def test_waiting_for_nothing_returns_at_once(live: Live) -> None:
    answer = live.post("/v1/solves", tiny(name="no patience"), headers={"Prefer": "wait=0"})
    assert answer.headers["preference-applied"] == "wait=0"


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_the_examples_of_the_console_work_as_they_are(live: Live, spec: object) -> None:
    assert live.solve(spec)["state"] == "succeeded"


def test_equal_specs_get_the_same_solve_unless_fresh(live: Live) -> None:
    first = live.solve(tiny(name="twice"))
    spelled_differently = json.dumps(tiny(name="twice", cost_model="roofline"), indent=2).encode()
    second = live.request("POST", "/v1/solves", content=spelled_differently, headers=JSON)
    assert second.status_code == 200
    assert second.json()["id"] == first["id"]
    fresh = live.solve(tiny(name="twice"), query="?fresh=true")
    assert fresh["id"] != first["id"]
    assert fresh["result"]["plan_digest"] == first["result"]["plan_digest"]  # same spec, same plan


def test_other_solver_settings_are_another_solve_of_the_same_problem(live: Live) -> None:
    # Heaviest first, whole tables of 3, 3, 2, 2 and 2 are 7 beside 5 on two ranks; CP-SAT finds 6 and 6.
    tables: list[dict[str, object]] = [
        {"name": f"t{index}", "num_embeddings": 10**6, "embedding_dim": 64, "pooling_factor": 100.0 * factor}
        | {"constraints": {"sharding_types": ["table_wise"]}}
        for index, factor in enumerate((3, 3, 2, 2, 2))
    ]
    first = live.solve(tiny(name="settings", model__tables=tables))
    exact = {"partitioner": "cp_sat", "time_limit_seconds": 3}
    second = live.solve(tiny(name="settings", model__tables=tables, solver=exact))
    assert first["id"] != second["id"]
    assert first["spec_digest"] == second["spec_digest"]
    assert second["result"]["partitioner"] == "cp_sat"  # its own settings, not those of the first
    assert first["result"]["partitioner"] == "greedy"
    for solve in (first, second):
        result = solve["result"]
        assert result["objective"]["lower_bound_seconds"] == result["lower_bound_seconds"]
    same_placement = first["result"]["plan_digest"] == second["result"]["plan_digest"]
    published = live.get(second["result"]["plan_url"]).json()
    assert (published["provenance"]["partitioner"] == "greedy") is same_placement  # the first publication


def test_racing_equal_submissions_get_one_solve(live: Live) -> None:
    before, ids = live.num_solves(), []

    def submit() -> None:
        ids.append(live.post("/v1/solves", tiny(name="raced")).json()["id"])

    threads = [threading.Thread(target=submit) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 16
    assert len(set(ids)) == 1
    assert live.num_solves() == before + 1


def test_infeasible_is_an_answer(live: Live) -> None:
    # Two tables of 10.8e9 bytes on two ranks of 8e9 x 0.85 bytes: each fits the cluster alone, not both.
    spec = tiny(
        model__tables__0__num_embeddings=300_000_000,
        model__tables__1__num_embeddings=300_000_000,
        model__tables__1__embedding_dim=8,
        hardware__overrides={"hbm_bytes": 8e9, "ddr_bytes": 0},
    )
    solve = live.solve(spec)
    assert solve["state"] == "succeeded"
    assert solve["result"]["termination"]["reason"] == "INFEASIBLE"
    assert solve["result"]["plan_digest"] is None
    shortfall = solve["result"]["shortfalls"][0]
    assert shortfall["required_bytes"] > shortfall["available_bytes"]
    assert shortfall["hint"]
    diagnosis = solve["result"]["diagnosis"]
    assert diagnosis["has_plan_without_constraints"] is False
    memory = next(fix for fix in diagnosis["fixes"] if fix["kind"] == "memory")
    (change,) = memory["changes"]
    assert change["pointer"] == "/hardware/overrides/hbm_bytes"
    assert memory["plan"]["fullest_rank_fraction"] <= 1
    fixed = live.solve({**spec, "hardware": {**spec["hardware"], "overrides": {"hbm_bytes": change["value"]}}})
    assert fixed["result"]["plan_digest"]
    assert fixed["result"]["diagnosis"] is None


def test_tables_never_looked_up_are_named_in_the_answer(live: Live) -> None:
    solve = live.solve(tiny(model__tables__1__pooling_factor=0))
    assert solve["state"] == "succeeded"
    assert '"b"' in solve["warnings"][0]["message"]


def test_bad_specs_are_refused_and_not_stored(live: Live) -> None:
    before = live.num_solves()
    problem = assert_problem(live.post("/v1/solves", tiny(model__tables__0__num_embeddings=0)), 422, "invalid-problem")
    assert problem["num_errors"] == 1
    assert problem["errors"][0]["pointer"] == "/model/tables/0/num_embeddings"
    outside = tiny(model__tables__0__constraints={"cache_load_factors": [0.5, 1.5]})
    problem = assert_problem(live.post("/v1/solves", outside), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/model/tables/0/constraints/cache_load_factors/1"
    hundred = tiny(model__tables=[{"name": "a"}] * 100)
    problem = assert_problem(live.post("/v1/solves", hundred), 422, "invalid-problem")
    assert len(problem["errors"]) == 50
    assert problem["num_errors"] >= 200
    assert live.num_solves() == before


def test_unknown_solves_are_problems(live: Live) -> None:
    assert_problem(live.get("/v1/solves/0123"), 404, "not-found")
    assert_problem(live.post("/v1/solves/0123:cancel"), 404, "not-found")
    assert_problem(live.get("/v1/solves/0123?wait=soon"), 400, "invalid-parameter")


def test_lists_are_paged_newest_first(live: Live) -> None:
    for number in range(3):
        live.solve(tiny(name=f"listed-{number}"))
    first = live.get("/v1/solves?page_size=2&state=succeeded")
    page = first.json()
    assert [solve["name"] for solve in page["solves"]] == ["listed-2", "listed-1"]
    assert page["solves"][0]["assumptions"] == []
    next_url = first.headers["link"].partition(">")[0].removeprefix("<")
    assert live.get(next_url).json()["solves"][0]["name"] == "listed-0"
    assert_problem(live.get("/v1/solves?page_size=501"), 400, "invalid-parameter")
    assert_problem(live.get("/v1/solves?page_token='%20or%201"), 400, "invalid-parameter")
    assert_problem(live.get("/v1/solves?state=lost"), 400, "invalid-parameter")


def test_validation_reports_what_a_solve_would_assume(live: Live) -> None:
    before = live.num_solves()
    answer = live.post("/v1/specs:validate", TINY)
    assert answer.status_code == 200
    document = answer.json()
    assert document["valid"] is True
    assert document["problems"] == []
    # 1000 x 8 x 4 + 500 x 16 x 4 bytes; row-wise AdaGrad keeps 4 bytes per row: 1500 x 4.
    assert document["totals"]["weight_bytes"] == 64_000
    assert document["totals"]["optimizer_bytes"] == 6_000
    assert document["totals"]["num_rows"] == 1500
    assert document["totals"]["ids_per_sample"] == 3.0
    assert document["totals"]["world_size"] == 2
    assert document["assumptions"]
    assert live.num_solves() == before


def test_validation_and_submission_reject_alike_and_all_at_once(live: Live) -> None:
    """A typo, a wrong value, a table that is left out, a name twice and one that is not there, and a bad pin."""
    shard = {"rank": 1, "row_offset": 0, "num_rows": 999, "column_offset": 0, "num_columns": 8}
    tables = [
        {"name": "a", "num_embeddings": 1000, "embedding_dim": 8},
        {"name": "b", "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 1.0},
        {"name": "b", "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 1.0},
        {"name": "c", "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 1.0},
    ]
    pinned = {"sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    tables[3]["constraints"] = {"pinned": pinned}
    spec = tiny(
        model__tables=tables, constraints={"apart": [["a", "d"]]}, solver__sead=1, solver__relative_gap=2, name=""
    )
    answers = [live.post(url, spec) for url in ("/v1/specs:validate", "/v1/solves")]
    documents = [assert_problem(answer, 422, "invalid-problem") for answer in answers]
    assert documents[0]["errors"] == documents[1]["errors"]
    assert [error["pointer"] for error in documents[0]["errors"]] == [
        "/name",
        "/model/tables/0",
        "/solver/relative_gap",
        "/solver/sead",
        "/model/tables/2/name",
        "/constraints/apart/0/1",
        "/model/tables/3/constraints/pinned/shards/0/num_rows",
    ]


def test_a_previous_plan_is_found_by_its_digest(live: Live) -> None:
    first = live.solve(tiny())
    digest = first["result"]["plan_digest"]
    changed = {"previous_plan": {"digest": digest}, "model__tables__0__pooling_factor": 2.01}
    again = live.solve(tiny(**changed))
    assert again["result"]["movement"]["previous_plan_digest"] == digest
    assert again["result"]["movement"]["moved_bytes"] == 0
    assert first["result"]["movement"] is None
    plan = live.get(again["result"]["plan_url"]).json()
    assert plan["movement"] == again["result"]["movement"]


def test_a_warm_start_is_found_by_its_digest(live: Live) -> None:
    first = live.solve(tiny())
    digest = first["result"]["plan_digest"]
    again = live.solve(tiny(solver__warm_start={"digest": digest}, model__tables__0__pooling_factor=2.03))
    assert again["result"]["movement"] is None
    plan = live.get(again["result"]["plan_url"]).json()
    assert f"plan {digest}" in plan["provenance"]["evidence"]["solver.warm_start"]["value"]


def test_a_previous_plan_that_is_not_preserved_here(live: Live) -> None:
    unknown = tiny(previous_plan={"digest": "sha256:" + 64 * "0"})
    for route in ("/v1/solves", "/v1/specs:validate"):
        problem = assert_problem(live.post(route, unknown), 422, "invalid-problem")
        assert [(error["pointer"], error["code"]) for error in problem["errors"]] == [
            ("/previous_plan/digest", "unknown-plan")
        ]
