"""Fitting, uploading, listing and comparing cost models."""

import json
from typing import Any

import pytest

from api.services.cost_models.report.html import PAGE_POLICY, report_page
from cost_models.learned.document.file import document_digest
from cost_models.registry import cost_model_names
from planner.domain.formats.canonical_json import canonical_bytes
from tests.support.service.live import Live
from tests.support.service.measured import DEVICE, benchmark_rows, model_bytes, model_document
from tests.support.service.posted import store_rows, upload
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny
from tests.support.thorough import thorough

NOTHING = "sha256:" + "0" * 64


def test_a_fit_is_accepted_with_a_place_to_look(live: Live) -> None:
    digest = store_rows(live)
    answer = live.post("/v1/cost-models", {"name": "accepted", "measurements": [digest], "seed": 3})
    assert answer.status_code == 202
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers["location"] == "/v1/cost-models/accepted@1"
    assert answer.json()["state"] == "fitting"
    model = live.get("/v1/cost-models/accepted@1?wait=60").json()
    assert (model["state"], model["kind"], model["device"], model["seed"]) == ("ready", "learned", DEVICE, 3)
    assert model["reference"] == "learned:accepted@1"
    assert model["measurements"] == [digest]
    assert model["figures"]["groups"][0]["mean_relative_error"] < 0.2
    assert "points_seconds" not in model["figures"]
    (verdict,) = model["figures"]["verdicts"]
    assert (verdict["kind"], verdict["enough"], verdict["num_rows"]) == ("lookup", False, 60)
    assert "Measure about 300 launches" in verdict["advice"]
    report = live.get(model["report_url"])
    assert report.headers["content-type"].startswith("text/html")
    assert report.headers["content-security-policy"] == PAGE_POLICY
    assert report.headers["x-content-type-options"] == "nosniff"
    assert report.text == report_page(live.get(model["document_url"]).json())


def test_uploaded_and_shipped_models_have_verdicts(live: Live) -> None:
    assert [one["enough"] for one in upload(live, "judged")["figures"]["verdicts"]] == [False]
    shipped = live.get("/v1/cost-models/cpu-epyc@1").json()["figures"]["verdicts"]
    assert [(one["kind"], one["enough"]) for one in shipped] == [("lookup", True), ("collective", True)]


def test_a_document_that_no_page_could_show_is_refused(live: Live) -> None:
    document = model_document("unshown")
    changed = document | {"figures": {"split": "<script>", "groups": [1], "points_seconds": {}}}
    changed["digest"] = document_digest(changed)
    problem = assert_problem(live.post("/v1/cost-models", {"document": changed}), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/document/figures/groups/0"


def test_waiting_answers_with_the_model_and_versions_count(live: Live) -> None:
    store_rows(live)
    request = {"name": "counted", "device": DEVICE}
    for version in (1, 2):
        answer = live.post("/v1/cost-models", request, headers={"Prefer": "wait=60"})
        assert answer.status_code == 200
        assert (answer.json()["id"], answer.json()["state"]) == (f"counted@{version}", "ready")
    first, second = (live.get(f"/v1/cost-models/counted@{version}").json() for version in (1, 2))
    assert first["digest"] == second["digest"]  # equal rows and seeds give equal models


def test_a_document_is_uploaded_once_and_fetched(live: Live) -> None:
    answer = live.post("/v1/cost-models", {"document": model_document("uploaded")})
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/cost-models/uploaded@1"
    again = live.post("/v1/cost-models", {"document": model_document("uploaded")})
    assert (again.status_code, again.json()) == (200, answer.json())
    document = live.get(answer.json()["document_url"])
    assert document.content == canonical_bytes(model_document("uploaded")) == model_bytes("uploaded")
    assert "immutable" in document.headers["cache-control"]
    same = live.get(answer.json()["document_url"], headers={"If-None-Match": document.headers["etag"]})
    assert same.status_code == 304


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"format": "pickle"}, "/document/format"),
        ({"digest": NOTHING}, "/document/digest"),
        ({"name": "other"}, "/document/digest"),
        ({"<script>": 1}, "/document"),
        ({"compute": {"<script>": [1, 2]}}, "/document/digest"),
    ],
)
def test_documents_that_are_no_models_are_refused(live: Live, change: dict[str, object], pointer: str) -> None:
    problem = assert_problem(
        live.post("/v1/cost-models", {"document": model_document() | change}), 422, "invalid-problem"
    )
    assert problem["errors"][0]["pointer"] == pointer
    assert "script" not in json.dumps(problem)


def test_requests_that_mean_nothing_are_refused(live: Live) -> None:
    digest, other = store_rows(live), store_rows(live, device="Other", seed=2)

    def refused(body: dict[str, object]) -> tuple[str, str]:
        problem = assert_problem(live.post("/v1/cost-models", body), 422, "invalid-problem")
        return problem["errors"][0]["pointer"], problem["errors"][0]["code"]

    assert refused({"name": "x"})[0] == ""
    assert refused({"measurements": [digest]})[0] == ""
    assert refused({"name": "x", "measurements": [digest], "device": DEVICE})[0] == ""
    assert refused({"name": "x", "document": model_document()})[0] == ""
    assert refused({"name": "../x", "measurements": [digest]})[0] == "/name"
    assert refused({"name": "x", "measurements": [digest, NOTHING]}) == ("/measurements/1", "unknown-measurements")
    assert refused({"name": "x", "measurements": [digest, other]}) == ("/measurements", "several-devices")
    assert refused({"name": "x", "device": "nobody has it"}) == ("/device", "unknown-measurements")


def test_a_fit_to_too_few_rows_fails_with_the_reason(live: Live) -> None:
    digest = live.post("/v1/measurements", {"rows": benchmark_rows(seed=9)[:1]}).json()["measurements_digest"]
    request = {"name": "too-few", "measurements": [digest]}
    model = live.post("/v1/cost-models", request, headers={"Prefer": "wait=60"}).json()
    assert (model["state"], model["error"]["code"]) == ("failed", "cannot-fit")
    assert "measure more" in model["error"]["message"]
    assert "shardplan measure" in model["error"]["hint"]
    assert model["digest"] is model["document_url"] is model["figures"] is None
    assert_problem(live.get("/v1/cost-models/too-few@1/document"), 404, "not-found")
    assert_problem(live.get("/v1/cost-models/too-few@1/report"), 404, "not-found")


def job_rows(live: Live, sharding_types: list[str]) -> tuple[dict[str, Any], str]:
    """Report a job's times under a plan; return the plan and the digest of the rows."""
    spec = tiny(cost_model=upload(live, "both")["reference"])
    for table in spec["model"]["tables"]:
        table["constraints"] = {"sharding_types": sharding_types}
    plan = live.get(live.solve(spec)["result"]["plan_url"]).json()
    ranks = [{"rank": rank, "seconds": {"forward_compute": 2e-5, "backward_compute": 5e-5}} for rank in (0, 1)]
    job = {"plan_digest": plan["plan_digest"], "steps": 10, "device": DEVICE, "ranks": ranks}
    return plan, live.post("/v1/measurements", job).json()["measurements_digest"]


def test_a_job_without_rows_of_its_own_teaches_nothing(live: Live) -> None:
    """Replicated tables are no lookups of the fused kernel."""
    _, empty = job_rows(live, ["data_parallel"])
    request = {"name": "of-none", "measurements": [store_rows(live), empty]}
    problem = assert_problem(live.post("/v1/cost-models", request), 422, "invalid-problem")
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == ("/measurements/1", "no-rows")


@thorough
def test_one_fit_learns_from_benchmarks_and_jobs(live: Live) -> None:
    rows = store_rows(live)
    plan, seen = job_rows(live, ["table_wise"])
    request = {"name": "of-both", "measurements": [rows, seen]}
    model = live.post("/v1/cost-models", request, headers={"Prefer": "wait=60"}).json()
    assert (model["state"], model["measurements"]) == ("ready", [rows, seen])
    document = live.get(model["document_url"]).json()
    assert document["trained_on"]["rows"] == {"lookup": 60 + len(plan["tables"])}
    assert document["trained_on"]["libraries"] == ["fbgemm_gpu 1.8.0", "training-job"]


def test_models_are_listed_page_by_page(live: Live) -> None:
    for name in ("listed-a", "listed-b"):
        upload(live, name)
    seen, url = [], "/v1/cost-models?page_size=1"
    while url:
        answer = live.get(url)
        seen += [item["id"] for item in answer.json()["cost_models"]]
        token = answer.json()["next_page_token"]
        assert ("link" in answer.headers) == (token is not None)
        url = f"/v1/cost-models?page_size=1&page_token={token}" if token else ""
    analytic, learned = seen[: len(cost_model_names())], seen[len(cost_model_names()) :]
    assert analytic == list(cost_model_names())
    assert learned == sorted(learned)
    assert {"listed-a@1", "listed-b@1"} <= set(learned)
    assert_problem(live.get("/v1/cost-models?page_token=x"), 400, "invalid-parameter")


def test_a_model_is_looked_at_by_its_id(live: Live) -> None:
    assert live.get("/v1/cost-models/roofline").json()["kind"] == "analytic"
    for name in ("nothing", "nothing@1", "nothing@0", "a@b@c", "%2e%2e"):
        assert_problem(live.get(f"/v1/cost-models/{name}"), 404, "not-found")


def test_two_models_are_rated_on_the_same_rows(live: Live) -> None:
    digest = store_rows(live)
    right, slow = upload(live, "right"), upload(live, "slow", slowdown=2.0)
    answer = live.get(f"/v1/cost-models/{right['id']}/compare/{slow['id']}?measurements={digest}").json()
    assert (answer["num_rows"], answer["measurements"]) == (60, [digest])
    errors = [model["figures"]["groups"][0]["mean_relative_error"] for model in answer["models"]]
    assert [model["id"] for model in answer["models"]] == ["right@1", "slow@1"]
    assert errors[0] < 0.2 < 0.7 < errors[1]
    assert answer["models"][0]["was_fitted_to"] == []
    fitted = {"name": "seen", "measurements": [digest]}
    live.post("/v1/cost-models", fitted, headers={"Prefer": "wait=60"})
    seen = live.get("/v1/cost-models/seen@1/compare/slow@1").json()
    assert [model["was_fitted_to"] for model in seen["models"]] == [[digest], []]
    assert_problem(live.get("/v1/cost-models/right@1/compare/slow@1"), 400, "invalid-parameter")
    assert_problem(live.get("/v1/cost-models/right@1/compare/slow@9"), 404, "not-found")
    unknown = live.get(f"/v1/cost-models/right@1/compare/slow@1?measurements={NOTHING}")
    assert_problem(unknown, 422, "invalid-problem")


@pytest.mark.parametrize("name", ["learned:", "learned:m", "learned:m@0", "learned:sha256:12", "learnt", "learned2"])
def test_names_that_no_model_can_have_are_refused_with_the_spelling(live: Live, name: str) -> None:
    problem = assert_problem(live.post("/v1/specs:validate", tiny(cost_model=name)), 422, "invalid-problem")
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == ("/cost_model", "unknown-cost-model")
    assert "learned" in problem["errors"][0]["hint"]
    assert len(problem["errors"]) == 1
