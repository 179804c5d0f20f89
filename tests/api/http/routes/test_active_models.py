"""Models of the package, and which model is active for a profile."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.errors import ServerTrouble
from api.cli.service.run_server import serve
from api.services.cost_models.report.html import report_page
from cost_models.learned.shipped import shipped_models
from tests.support.service.live import Live, settings_for
from tests.support.service.measured import DEVICE, benchmark_rows, model_bytes, model_document
from tests.support.service.posted import store_rows, upload
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny
from tests.support.thorough import thorough

PROFILE = "dgx-h100-80g"
ACTIVE = f"/v1/hardware-profiles/{PROFILE}/cost-model"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Live]:
    """A service of its own."""
    with Live.of(tmp_path) as service:
        yield service


def chosen_for(live: Live, spec: object) -> list[dict[str, str]]:
    """What the check of a spec says of its cost model."""
    answer = live.post("/v1/specs:validate", spec)
    assert answer.status_code == 200, answer.text
    return [item for item in answer.json()["assumptions"] if item["subject"] == "cost_model"]


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
    compared = own.get(f"/v1/cost-models/cpu-epyc@1/compare/m@1?measurements={digest}").json()
    assert [model["id"] for model in compared["models"]] == ["cpu-epyc@1", "m@1"]
    assert_problem(own.get("/v1/cost-models/cpu-epyc@1/compare/m@1"), 400, "invalid-parameter")
    assert_problem(own.get(ACTIVE), 404, "not-found")  # nobody activated anything
    active = own.put(ACTIVE, {"cost_model": "cpu-epyc@1"})
    assert (active.status_code, active.json()["digest"]) == (201, listed["cpu-epyc@1"]["digest"])


@thorough
def test_models_of_the_package_are_preserved_once_however_often_a_server_starts(tmp_path: Path) -> None:
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
    monkeypatch.setattr("api.specs.references.stored_models.shipped_for", {PROFILE: "cpu-epyc"}.get)
    shipped = own.get("/v1/cost-models/cpu-epyc@1").json()
    (reported,) = chosen_for(own, tiny(cost_model="learned"))
    assert reported["value"] == f"learned:{shipped['digest']}"
    assert reported["source"].startswith(f"cpu-epyc@1, which was active for {PROFILE}")
    (by_digest,) = chosen_for(own, tiny(cost_model=reported["value"]))
    assert by_digest["source"].startswith("cpu-epyc@1; ")
    one = upload(own, "m")
    own.put(ACTIVE, {"cost_model": "m@1"})
    assert chosen_for(own, tiny(cost_model="learned"))[0]["value"] == f"learned:{one['digest']}"


@pytest.mark.parametrize(
    ("content", "reported"), [(b"{}", "lacks format"), (model_bytes().replace(b'"seed":0', b'"seed":1'), "was edited")]
)
def test_a_server_whose_installation_has_a_damaged_model_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, reported: str
) -> None:
    monkeypatch.setattr("api.http.app.shipped_models", lambda: {"torn": content})
    with pytest.raises(ServerTrouble) as failed:
        serve(settings_for(tmp_path, port=0))
    assert "cost model torn of this installation is damaged" in str(failed.value)
    assert reported in str(failed.value)


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
    reported = own.get(ACTIVE)
    assert reported.json() == second.json()
    assert [(one["version"], one["cost_model"]) for one in reported.json()["history"]] == [(1, "m@1"), (2, "m@2")]
    assert own.get(ACTIVE, headers={"If-None-Match": reported.headers["etag"]}).status_code == 304


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


@thorough
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


def test_a_named_model_is_warned_of_until_it_is_active_for_the_profile(own: Live) -> None:
    upload(own, "m")
    spec = tiny(cost_model="learned:m@1", model__batch_size_per_rank=32)
    (warning,) = own.post("/v1/specs:validate", spec).json()["warnings"]
    assert (warning["code"], warning["severity"], warning["pointer"]) == ("other-device", "warning", "/cost_model")
    assert f"m@1 was measured on {DEVICE}" in warning["message"]
    assert own.solve(spec)["warnings"] == [warning]
    own.put(ACTIVE, {"cost_model": "m@1"})
    upload(own, "m", slowdown=2.0)  # of the same device, and so of that of the profile
    for version in (1, 2):
        named = spec | {"cost_model": f"learned:m@{version}"}
        assert own.post("/v1/specs:validate", named).json()["warnings"] == []


def test_any_plan_is_rated_under_a_learned_model(own: Live) -> None:
    upload(own, "m")
    plan = own.get(own.solve(tiny())["result"]["plan_url"]).json()
    body = {"spec": tiny(), "plan": plan}
    score = own.post("/v1/plans:evaluate?cost_model=learned:m@1", body).json()
    assert score["score"]["cost_model"].startswith("m@")
    assert [(one["code"], one["pointer"]) for one in score["warnings"]] == [("other-device", "/spec/cost_model")]
    assert score["score"]["prediction"]["coverage"] == 0.9
    assert_problem(own.post("/v1/plans:evaluate?cost_model=learned:m@7", body), 422, "invalid-problem")
    assert_problem(own.post("/v1/plans:evaluate?cost_model=learned:", body), 400, "invalid-parameter")
