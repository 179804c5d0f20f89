"""Storing rows of benchmarks, and what jobs saw that ran plans."""

import copy
import json

import pytest

from api.http.routes.examples import COST_MODELS, LOOKUP_ROW, MEASUREMENTS
from tests.support.service.live import Live
from tests.support.service.measured import DEVICE, benchmark_rows, model_document
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny

NOTHING = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def stored(live: Live) -> dict[str, object]:
    answer = live.post("/v1/measurements", {"rows": benchmark_rows()})
    assert answer.status_code == 201
    assert answer.headers["location"] == answer.json()["measurements_url"]
    return answer.json()


@pytest.fixture(scope="module")
def plan(live: Live) -> dict[str, object]:
    """A plan under a learned model. Without starts tables are cut, so that a job sees what ranks look up."""
    model = live.post("/v1/cost-models", {"document": model_document()}).json()
    solve = live.solve(tiny(cost_model=model["reference"], count_starts=False))
    return live.get(solve["result"]["plan_url"]).json()


def job(plan: dict[str, object], *, factor: float = 1.0, **changes: object) -> dict[str, object]:
    """What a job saw that took ``factor`` times as long as was predicted."""
    ranks = [
        {
            "rank": rank["rank"],
            "seconds": {name: factor * rank["seconds"][name] for name in ("forward_compute", "backward_compute")},
        }
        for rank in plan["ranks"]
    ]
    return {"plan_digest": plan["plan_digest"], "steps": 1000, "device": DEVICE, "ranks": ranks} | changes


def test_equal_rows_are_stored_once(live: Live, stored: dict[str, object]) -> None:
    assert (stored["source"], stored["device"], stored["num_rows"]) == ("benchmark", DEVICE, 60)
    assert stored["comparison"] is stored["plan_digest"] is None
    again = live.post("/v1/measurements", {"rows": benchmark_rows()})
    assert (again.status_code, again.json()) == (200, stored)


def test_examples_can_be_sent_as_they_are(live: Live) -> None:
    for body in MEASUREMENTS.values():
        assert live.post("/v1/measurements", body).status_code == 201
    for body in COST_MODELS.values():
        assert live.post("/v1/cost-models", body).status_code == 202


def test_rows_are_fetched_by_digest(live: Live, stored: dict[str, object]) -> None:
    answer = live.get(stored["measurements_url"])
    assert answer.json()["rows"][0]["seconds"] == benchmark_rows()[0]["seconds"]
    assert "immutable" in answer.headers["cache-control"]
    same = live.get(stored["measurements_url"], headers={"If-None-Match": answer.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert_problem(live.get(f"/v1/measurements/{NOTHING}"), 404, "not-found")
    assert_problem(live.get("/v1/measurements/x"), 400, "invalid-parameter")


def test_batches_are_listed_page_by_page(live: Live, stored: dict[str, object]) -> None:
    live.post("/v1/measurements", {"rows": benchmark_rows(device="another", seed=1)})
    seen, url = [], "/v1/measurements?page_size=1"
    while url:
        answer = live.get(url)
        seen += [item["measurements_digest"] for item in answer.json()["measurements"]]
        token = answer.json()["next_page_token"]
        assert ("link" in answer.headers) == (token is not None)
        url = f"/v1/measurements?page_size=1&page_token={token}" if token else ""
    assert seen == sorted(seen)
    assert stored["measurements_digest"] in seen


@pytest.mark.parametrize(
    ("changes", "pointer", "message"),
    [
        ({"seconds": 0.0}, "/rows/0/seconds", "above 0"),
        ({"lookups": None}, "/rows/0/lookups", "must be given"),
        ({"seconds": "=cmd()"}, "/rows/0/seconds", "number"),
        ({"device": "=cmd()"}, "/rows/0/device", "begins with a letter"),
        ({"colour": "blue"}, "/rows/0/colour", "unknown"),
        ({"distinct_rows": 1e9}, "/rows/0/distinct_rows", "more than"),
        ({"forward_seconds": 1.1, "backward_seconds": 2.7, "seconds": 3800.0}, "/rows/0/seconds", "600"),
    ],
)
def test_rows_that_cannot_be_are_refused_with_their_place(
    live: Live, changes: dict[str, object], pointer: str, message: str
) -> None:
    problem = assert_problem(live.post("/v1/measurements", {"rows": [LOOKUP_ROW | changes]}), 422, "invalid-problem")
    first = problem["errors"][0]
    assert first["pointer"] == pointer
    assert message.lower() in first["message"].lower()
    assert "cmd()" not in str(problem)


def test_infinity_is_no_number(live: Live) -> None:
    body = json.dumps({"rows": [LOOKUP_ROW]}).replace("0.0038", "1e999").encode()
    answer = live.request("POST", "/v1/measurements", content=body, headers={"Content-Type": "application/json"})
    problem = assert_problem(answer, 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/rows/0/seconds"


def test_a_body_of_neither_kind_is_refused(live: Live) -> None:
    for body in ({}, [], {"rows": []}, {"rows": 1}, {"rows": [], "plan_digest": NOTHING}):
        assert_problem(live.post("/v1/measurements", body), 422, "invalid-problem")


def test_a_job_is_put_next_to_the_prediction_of_its_plan(live: Live, plan: dict[str, object]) -> None:
    answer = live.post("/v1/measurements", job(plan))
    assert answer.status_code == 201
    found = answer.json()
    assert (found["source"], found["plan_digest"], found["device"]) == ("job", plan["plan_digest"], DEVICE)
    comparison = found["comparison"]
    assert comparison["cost_model"] == plan["provenance"]["cost_model"]
    assert [one["phase"] for one in comparison["phases"]] == ["forward_compute", "backward_compute"]
    assert all(one["ratio"] == 1.0 for one in comparison["phases"])
    assert comparison["drift"]["drifted"] is False
    listed = live.get("/v1/measurements?page_size=500").json()["measurements"]
    assert found in listed


def test_rows_are_made_of_what_a_job_saw(live: Live, plan: dict[str, object]) -> None:
    found = live.post("/v1/measurements", job(plan, steps=77)).json()
    document = live.get(found["measurements_url"]).json()
    assert document["ranks"] == job(plan)["ranks"]
    shards = [(table["name"], shard) for table in plan["tables"] for shard in table["shards"]]
    assert found["num_rows"] == len(document["rows"]) == len(shards)
    reported = [(name, shard["num_rows"], shard["num_columns"]) for name, shard in shards]
    assert sorted(
        (row["table"].partition("#")[0], row["shard_rows"], row["shard_columns"]) for row in document["rows"]
    ) == sorted(reported)
    for row in document["rows"]:
        assert (row["kind"], row["implementation"], row["repeats"]) == ("lookup", "fbgemm_tbe", 77)
    assert len({row["task"] for row in document["rows"]}) == 1


def test_rows_of_a_job_on_cpus_name_what_cpus_run(live: Live, plan: dict[str, object]) -> None:
    seen = job(plan, device="Intel Xeon Processor, 1 of 2 cores")
    for rank in seen["ranks"]:
        rank["seconds"]["forward_comm"] = 1e-3
    found = live.post("/v1/measurements", seen).json()
    rows = live.get(found["measurements_url"]).json()["rows"]
    assert {(row["kind"], row["implementation"]) for row in rows} == {("lookup", "fbgemm_tbe"), ("collective", "gloo")}
    assumed = {one["subject"]: one["value"] for one in found["comparison"]["assumptions"]}
    assert assumed == {"library": "training-job", "implementation": "fbgemm_tbe", "communication": "gloo"}
    stated = {"library": "torch", "implementation": "embedding_bag", "communication": "mpi"}
    reported = live.post("/v1/measurements", seen | stated).json()
    assert reported["comparison"]["assumptions"] == []
    rows = live.get(reported["measurements_url"]).json()["rows"]
    assert {(row["kind"], row["implementation"]) for row in rows} == {
        ("lookup", "embedding_bag"),
        ("collective", "mpi"),
    }


def test_a_job_says_what_ran_where_nothing_reports(live: Live) -> None:
    plan = live.get(live.solve(tiny(runtime="generic"))["result"]["plan_url"]).json()
    problem = assert_problem(live.post("/v1/measurements", job(plan)), 422, "invalid-problem")
    (error,) = problem["errors"]
    assert (error["pointer"], error["code"]) == ("/implementation", "missing-field")
    assert "fbgemm_tbe" in error["hint"]
    assert live.post("/v1/measurements", job(plan, implementation="fbgemm_tbe")).status_code == 201


def test_times_outside_their_intervals_are_drift_once_there_are_enough(live: Live) -> None:
    model = live.post("/v1/cost-models", {"document": model_document()}).json()
    spec = tiny(
        cost_model=model["reference"],
        hardware__ranks_per_host=8,
        model__tables=[
            {"name": f"t{i}", "num_embeddings": 100_000, "embedding_dim": 64, "pooling_factor": 20.0} for i in range(16)
        ],
        model__batch_size_per_rank=512,
    )
    plan = live.get(live.solve(spec)["result"]["plan_url"]).json()
    steady = live.post("/v1/measurements", job(plan)).json()["comparison"]
    assert steady["drift"]["num_outside"] == 0
    slow = live.post("/v1/measurements", job(plan, factor=3.0)).json()["comparison"]
    assert slow["drift"]["drifted"] is True
    assert slow["drift"]["num_outside"] == slow["drift"]["num_compared"] > 4
    assert slow["drift"]["probability"] < 0.001
    assert "fit the model again" in slow["drift"]["detail"]
    rest = sum(one["num_ranks"] for one in slow["phases"]) - slow["drift"]["num_compared"]
    assert ("were not judged" in slow["drift"]["detail"]) == (rest > 0)
    exchanged = job(plan)
    for rank in exchanged["ranks"]:
        rank["seconds"]["input_comm"] = 1e-3
    reported = live.post("/v1/measurements", exchanged).json()["comparison"]["drift"]["detail"]
    assert "8 times rest on analytic prices, too, and were not judged" in reported
    assert [round(one["ratio"], 6) for one in slow["phases"]] == [3.0, 3.0]
    assert all(one["in_interval"] is False for one in slow["phases"])


def test_ranks_with_replicated_tables_are_compared_and_stated_not_to_be_rated(live: Live) -> None:
    model = live.post("/v1/cost-models", {"document": model_document()}).json()
    small = {"name": "small", "num_embeddings": 500, "embedding_dim": 64, "pooling_factor": 4.0}
    copied = {"name": "copied", "constraints": {"sharding_types": ["data_parallel"]}}
    fused = {"constraints": {"sharding_types": ["table_wise"]}}
    spec = tiny(cost_model=model["reference"], model__tables=[small | fused, small | copied])
    plan = live.get(live.solve(spec)["result"]["plan_url"]).json()
    comparison = live.post("/v1/measurements", job(plan)).json()["comparison"]
    for one in comparison["phases"]:
        assert (one["num_ranks"], one["ratio"], one["num_outside"]) == (2, 1.0, None)
        assert "ranks 0, 1: table copied is replicated (kernel dense)" in [
            words.partition(";")[0] for words in one["not_judged"]
        ]
    assert comparison["drift"]["num_compared"] == 0
    assert comparison["left_out"][0].endswith("of ranks 0, 1: table copied is replicated (kernel dense)")


def test_an_analytic_model_has_no_intervals(live: Live) -> None:
    plan = live.get(live.solve(tiny())["result"]["plan_url"]).json()
    comparison = live.post("/v1/measurements", job(plan, factor=1.5)).json()["comparison"]
    assert comparison["coverage"] is comparison["drift"] is None
    assert comparison["phases"][0]["ratio"] == pytest.approx(1.5)
    assert comparison["phases"][0]["in_interval"] is comparison["phases"][0]["num_outside"] is None


def test_what_a_job_cannot_have_seen_is_refused(live: Live, plan: dict[str, object]) -> None:
    def refused(body: dict[str, object]) -> list[str]:
        problem = assert_problem(live.post("/v1/measurements", body), 422, "invalid-problem")
        return [error["pointer"] for error in problem["errors"]]

    ranks = job(plan)["ranks"]
    assert refused(job(plan, plan_digest=NOTHING)) == ["/plan_digest"]
    assert refused(job(plan, ranks=[*ranks, ranks[0]])) == ["/ranks/2/rank"]
    assert refused(job(plan, ranks=[{**ranks[0], "rank": 2}])) == ["/ranks/0/rank"]
    assert refused(job(plan, ranks=[{"rank": 0, "seconds": {"lunch": 1.0}}]))[0].startswith("/ranks/0/seconds")
    assert refused(job(plan, ranks=[{"rank": 0, "seconds": {"forward_compute": -1.0}}]))
    assert refused(job(plan, ranks=[]))
    assert refused(job(plan, steps=0)) == ["/steps"]
    milliseconds = copy.deepcopy(ranks)
    for rank in milliseconds:
        rank["seconds"] = {"forward_compute": 8.0, "backward_compute": 17.0}
    assert refused(job(plan, ranks=milliseconds)) == ["/ranks"]


def test_ranks_that_were_not_timed_are_stated_to_be_left_out(live: Live, plan: dict[str, object]) -> None:
    seconds = {"forward_compute": 1e-5, "forward_comm": 1e-5}
    found = live.post("/v1/measurements", job(plan, ranks=[{"rank": 0, "seconds": seconds}])).json()
    assert found["num_rows"] == 0
    assert found["comparison"]["left_out"] == [
        "lookups: 2 of 2 ranks were not timed both forward and backward",
        "forward_comm: not all ranks were timed",
    ]
