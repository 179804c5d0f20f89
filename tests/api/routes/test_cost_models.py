"""Fitting, uploading, listing, comparing and activating cost models."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.model_report import PAGE_POLICY, report_page
from api.server import StartFailed, serve
from cost_models.learned.file import document_digest
from cost_models.learned.shipped import shipped_models
from cost_models.registry import cost_model_names
from planner.canonical import canonical_bytes
from tests.api import fits
from tests.api.live import Live, settings_for
from tests.api.measured import DEVICE, benchmark_rows, model_bytes, model_document
from tests.api.problems import assert_problem
from tests.api.specs import tiny

PROFILE = "dgx-h100-80g"
ACTIVE = f"/v1/hardware-profiles/{PROFILE}/cost-model"
NOTHING = "sha256:" + "0" * 64


def store_rows(live: Live, **changes: object) -> str:
    return str(live.post("/v1/measurements", {"rows": benchmark_rows(**changes)}).json()["measurements_digest"])


def upload(live: Live, name: str, **changes: object) -> dict[str, object]:
    return live.post("/v1/cost-models", {"document": model_document(name, **changes)}).json()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Live]:
    """A service of its own."""
    with Live.of(tmp_path) as service:
        yield service


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
    report = live.get(model["report_url"])
    assert report.headers["content-type"].startswith("text/html")
    assert report.headers["content-security-policy"] == PAGE_POLICY
    assert report.headers["x-content-type-options"] == "nosniff"
    assert report.text == report_page(live.get(model["document_url"]).json())


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


def test_one_fit_learns_from_benchmarks_and_jobs(live: Live) -> None:
    rows = store_rows(live)
    plan = live.get(live.solve(tiny(cost_model=upload(live, "both")["reference"]))["result"]["plan_url"]).json()
    ranks = [{"rank": rank, "seconds": {"forward_compute": 2e-5, "backward_compute": 5e-5}} for rank in (0, 1)]
    job = {"plan_digest": plan["plan_digest"], "steps": 10, "device": DEVICE, "ranks": ranks}
    seen = live.post("/v1/measurements", job).json()["measurements_digest"]
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


def test_two_models_are_judged_on_the_same_rows(live: Live) -> None:
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


def test_models_of_the_package_are_versions_like_others(own: Live) -> None:
    listed = {one["id"]: one for one in own.get("/v1/cost-models").json()["cost_models"]}
    for name, content in shipped_models().items():
        one = listed[f"{name}@1"]
        assert (one["state"], one["kind"], one["reference"]) == ("ready", "learned", f"learned:{name}@1")
        assert own.get(f"/v1/cost-models/{name}@1").json() == one
        assert own.get(one["document_url"]).content == content
        assert own.get(one["report_url"]).text == report_page(json.loads(content))
        again = own.post("/v1/cost-models", {"document": json.loads(content)})
        assert (again.status_code, again.json()) == (200, one)
    upload(own, "m")
    digest = store_rows(own)
    compared = own.get(f"/v1/cost-models/cpu-xeon@1/compare/m@1?measurements={digest}").json()
    assert [model["id"] for model in compared["models"]] == ["cpu-xeon@1", "m@1"]
    assert_problem(own.get("/v1/cost-models/cpu-xeon@1/compare/m@1"), 400, "invalid-parameter")
    assert_problem(own.get(ACTIVE), 404, "not-found")  # nobody activated anything
    active = own.put(ACTIVE, {"cost_model": "cpu-xeon@1"})
    assert (active.status_code, active.json()["digest"]) == (201, listed["cpu-xeon@1"]["digest"])


def test_models_of_the_package_are_kept_once_however_often_a_server_starts(tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        with Live.of(tmp_path) as live:
            seen.append(live.get("/v1/cost-models").json())
    assert seen[0] == seen[1]


def test_a_model_of_the_package_is_the_next_version_of_a_name_that_is_taken(own: Live) -> None:
    models = own.app.state.services.models
    upload(own, "later")
    models.add_shipped({"later": model_bytes("later", slowdown=2.0)})
    models.add_shipped({"later": model_bytes("later")})
    digests = [own.get(f"/v1/cost-models/later@{version}").json()["digest"] for version in (1, 2)]
    assert digests == [model_document("later")["digest"], model_document("later", slowdown=2.0)["digest"]]
    assert_problem(own.get("/v1/cost-models/later@3"), 404, "not-found")


def test_learned_means_the_model_of_the_package_for_its_profile_until_one_is_activated(
    own: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.stored_models.shipped_for", {PROFILE: "cpu-xeon"}.get)
    shipped = own.get("/v1/cost-models/cpu-xeon@1").json()
    (told,) = chosen_for(own, tiny(cost_model="learned"))
    assert told["value"] == f"learned:{shipped['digest']}"
    assert told["source"].startswith(f"cpu-xeon@1, which was active for {PROFILE}")
    (by_digest,) = chosen_for(own, tiny(cost_model=told["value"]))
    assert by_digest["source"].startswith("cpu-xeon@1; ")
    one = upload(own, "m")
    own.put(ACTIVE, {"cost_model": "m@1"})
    assert chosen_for(own, tiny(cost_model="learned"))[0]["value"] == f"learned:{one['digest']}"


def chosen_for(live: Live, spec: object) -> list[dict[str, str]]:
    """What the check of a spec says of its cost model."""
    answer = live.post("/v1/specs:validate", spec)
    assert answer.status_code == 200, answer.text
    return [item for item in answer.json()["assumptions"] if item["subject"] == "cost_model"]


@pytest.mark.parametrize(
    ("content", "told"), [(b"{}", "lacks format"), (model_bytes().replace(b'"seed":0', b'"seed":1'), "was edited")]
)
def test_a_server_whose_installation_has_a_damaged_model_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.setattr("api.app.shipped_models", lambda: {"torn": content})
    with pytest.raises(StartFailed) as failed:
        serve(settings_for(tmp_path, port=0))
    assert "cost model torn of this installation is damaged" in str(failed.value)
    assert told in str(failed.value)


def test_activations_never_get_lost(own: Live) -> None:
    assert_problem(own.get(ACTIVE), 404, "not-found")
    one, two = upload(own, "m"), upload(own, "m", slowdown=2.0)
    assert_problem(own.put(ACTIVE, {"cost_model": one["id"]}, headers={"If-Match": '"v1"'}), 412, "activation-changed")
    first = own.put(ACTIVE, {"cost_model": one["id"]}, headers={"If-None-Match": "*"})
    assert (first.status_code, first.json()["version"], first.json()["digest"]) == (201, 1, one["digest"])
    assert_problem(own.put(ACTIVE, {"cost_model": two["id"]}), 428, "precondition-required")
    lost = own.put(ACTIVE, {"cost_model": two["id"]}, headers={"If-Match": '"v9-0"'})
    assert_problem(lost, 412, "activation-changed")
    assert lost.headers["etag"] == first.headers["etag"]
    second = own.put(ACTIVE, {"cost_model": two["id"]}, headers={"If-Match": first.headers["etag"]})
    assert (second.status_code, second.json()["version"]) == (200, 2)
    told = own.get(ACTIVE)
    assert told.json() == second.json()
    assert [(one["version"], one["cost_model"]) for one in told.json()["history"]] == [(1, "m@1"), (2, "m@2")]
    assert own.get(ACTIVE, headers={"If-None-Match": told.headers["etag"]}).status_code == 304


def test_only_what_is_there_becomes_active(own: Live) -> None:
    assert_problem(own.put(ACTIVE, {"cost_model": "m@1"}), 404, "not-found")
    assert_problem(own.put(ACTIVE, {"cost_model": "roofline"}), 422, "invalid-problem")
    assert_problem(own.put("/v1/hardware-profiles/none/cost-model", {"cost_model": "m@1"}), 404, "not-found")
    assert_problem(own.get("/v1/hardware-profiles/none/cost-model"), 404, "not-found")
    digest = own.post("/v1/measurements", {"rows": benchmark_rows()[:1]}).json()["measurements_digest"]
    own.post("/v1/cost-models", {"name": "m", "measurements": [digest]}, headers={"Prefer": "wait=60"})
    problem = assert_problem(own.put(ACTIVE, {"cost_model": "m@1"}), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/cost_model"
    assert "failed" in problem["errors"][0]["message"]


def test_learned_means_what_was_active_when_the_spec_was_read(own: Live) -> None:
    spec = tiny(cost_model="learned")
    problem = assert_problem(own.post("/v1/solves", spec), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/cost_model"
    assert "shardplan fit" in problem["errors"][0]["hint"]
    one = upload(own, "m")
    upload(own, "m", slowdown=2.0)
    available = assert_problem(own.post("/v1/specs:validate", spec), 422, "invalid-problem")
    assert "learned:m@1" in available["errors"][0]["hint"]

    active = own.put(ACTIVE, {"cost_model": "m@1"})
    first = own.solve(spec)
    assumed = next(item for item in first["assumptions"] if item["subject"] == "cost_model")
    assert assumed["value"] == f"learned:{one['digest']}"
    assert f"active for {PROFILE}" in assumed["source"]
    plan = own.get(first["result"]["plan_url"]).json()
    assert plan["provenance"]["cost_model"] == f"m@{one['digest'].removeprefix('sha256:')[:12]}"
    assert plan["provenance"]["evidence"]["cost_model"]["value"] == f"learned:{one['digest']}"
    for reference in ("learned:m@1", f"learned:{one['digest']}"):
        assert own.solve(tiny(cost_model=reference))["id"] == first["id"]

    own.put(ACTIVE, {"cost_model": "m@2"}, headers={"If-Match": active.headers["etag"]})
    second = own.solve(spec)
    assert second["id"] != first["id"]
    assert second["spec_digest"] != first["spec_digest"]
    assert own.get(f"/v1/solves/{first['id']}").json() == first
    explained = own.get(f"/v1/plans/{plan['plan_digest']}/explanation")
    assert explained.status_code == 200
    assert explained.json()["spec_digest"] == first["spec_digest"]


def test_any_plan_is_judged_under_a_learned_model(own: Live) -> None:
    upload(own, "m")
    plan = own.get(own.solve(tiny())["result"]["plan_url"]).json()
    body = {"spec": tiny(), "plan": plan}
    score = own.post("/v1/plans:evaluate?cost_model=learned:m@1", body).json()
    assert score["score"]["cost_model"].startswith("m@")
    assert score["warnings"] == []
    assert score["score"]["prediction"]["coverage"] == 0.9
    assert_problem(own.post("/v1/plans:evaluate?cost_model=learned:m@7", body), 422, "invalid-problem")
    assert_problem(own.post("/v1/plans:evaluate?cost_model=learned:", body), 400, "invalid-parameter")


@pytest.mark.parametrize("name", ["learned:", "learned:m", "learned:m@0", "learned:sha256:12", "learnt", "learned2"])
def test_names_that_no_model_can_have_are_refused_with_the_spelling(live: Live, name: str) -> None:
    problem = assert_problem(live.post("/v1/specs:validate", tiny(cost_model=name)), 422, "invalid-problem")
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == ("/cost_model", "unknown-cost-model")
    assert "learned" in problem["errors"][0]["hint"]
    assert len(problem["errors"]) == 1


def test_a_fit_is_stopped_and_its_process_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_TEST_FOLDER", str(tmp_path))
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


def test_a_fit_that_the_server_left_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_TEST_FOLDER", str(tmp_path))
    with Live.of(tmp_path / "data", fit=fits.hang) as live:
        live.post("/v1/cost-models", {"name": "m", "measurements": [store_rows(live)]})
        pid = _pid(tmp_path)
    _wait_for_end(pid)
    with Live.of(tmp_path / "data") as live:
        model = live.get("/v1/cost-models/m@1?wait=60").json()
        assert model["state"] == "ready"
        assert live.solve(tiny(cost_model="learned:m@1"))["state"] == "succeeded"


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: object, settings: dict[str, float], code: str, hint: str
) -> None:
    monkeypatch.setenv("SHARDPLAN_TEST_FOLDER", str(tmp_path))
    with Live.of(tmp_path / "data", fit=fit, **settings) as live:
        request = {"name": "m", "measurements": [store_rows(live)]}
        model = live.post("/v1/cost-models", request, headers={"Prefer": "wait=60"}).json()
        assert (model["state"], model["error"]["code"]) == ("failed", code)
        assert hint in model["error"]["hint"]
        assert "must not leave" not in json.dumps(model)


def test_only_so_many_fits_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_TEST_FOLDER", str(tmp_path))
    with Live.of(tmp_path / "data", fit=fits.hang, max_queued_fits=1) as live:
        request = {"name": "m", "measurements": [store_rows(live)]}
        live.post("/v1/cost-models", request)
        full = live.post("/v1/cost-models", request)
        assert_problem(full, 503, "queue-full")
        assert full.headers["retry-after"]


def _pid(folder: Path) -> int:
    deadline = time.monotonic() + 60
    while not (folder / "pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int((folder / "pid").read_text())


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)
