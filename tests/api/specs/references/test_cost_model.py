"""What ``cost_model`` of a spec means, without a service."""

import json

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.issues import IssueCollector
from api.specs.parse import parse_spec
from api.specs.references import cost_model as model_reference
from api.specs.references.cost_model import ChosenModel, OneModel, ShippedModels, choose_model, learned_digest
from api.specs.references.learned_model import fit, load_model
from api.specs.references.resolve import Library
from cost_models.hardware.profiles_loader import profile_ids
from cost_models.learned.shipped import shipped_for, shipped_models
from cost_models.measurements.json_rows import rows_from_json
from planner.errors import Issue
from tests.support.service.measured import benchmark_rows, model_bytes
from tests.support.service.specs import raw, tiny

PROFILE = "dgx-h100-80g"


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> str:
    """One model in the package, for one profile; returns its digest."""
    monkeypatch.setattr(model_reference, "shipped_models", lambda: {"h100": model_bytes()})
    monkeypatch.setattr(model_reference, "shipped_for", {PROFILE: "h100"}.get)
    return load_model(model_bytes()).digest


def test_models_of_the_package_can_be_read_and_their_profiles_exist() -> None:
    for content in shipped_models().values():
        load_model(content)
    for profile in profile_ids():
        assert shipped_for(profile) in (None, *shipped_models())


def issue_of_choice(name: str, profile: str) -> Issue:
    """Why there is no model of a name."""
    issues = IssueCollector()
    assert choose_model(name, profile, ShippedModels(), issues) is None
    with pytest.raises(RejectedDocument) as rejected:
        issues.raise_if_any()
    (issue,) = rejected.value.issues
    return issue


def test_a_shipped_model_is_active_for_its_profile_alone(shipped: str) -> None:
    chosen = choose_model("learned", PROFILE, ShippedModels(), IssueCollector())
    assert isinstance(chosen, ChosenModel)
    assert chosen.name == f"learned:{shipped}"
    missing = issue_of_choice("learned", "dgx-a100-80g")
    assert missing.pointer == "/cost_model"
    assert f"learned:{shipped}" in missing.hint
    by_digest = choose_model(f"learned:{shipped}", "dgx-a100-80g", ShippedModels(), IssueCollector())
    assert isinstance(by_digest, ChosenModel)
    assert issue_of_choice("learned:m@1", PROFILE).code == "unknown-cost-model"


def test_a_spec_that_was_read_means_the_same_when_it_is_read_again(shipped: str) -> None:
    first = parse_spec(raw(tiny(cost_model="learned")))
    assert first.spec["cost_model"] == f"learned:{shipped}"
    again = parse_spec(raw(first.spec), Library(find_model=OneModel(model_bytes())))
    assert (again.spec, again.spec_digest) == (first.spec, first.spec_digest)
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(first.spec), Library(find_model=OneModel(model_bytes("other"))))
    assert refused.value.issues[0].code == "unknown-cost-model"


def test_a_model_of_another_version_is_reported_as_the_model_of_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    older = json.dumps(json.loads(model_bytes()) | {"format_version": 1}).encode()
    monkeypatch.setattr(model_reference, "shipped_models", lambda: {"older": older, "h100": model_bytes()})
    monkeypatch.setattr(model_reference, "shipped_for", {PROFILE: "older"}.get)
    issue = issue_of_choice("learned", PROFILE)
    assert (issue.code, issue.pointer) == ("invalid-model-file", "/cost_model")
    assert issue.message == "this version cannot read the learned cost model older: /format_version expected 2"
    assert "fit the model again" in issue.hint
    # Another model for the same profile is none the worse for it.
    assert ShippedModels().device_of(PROFILE) is None


def warned(model: bytes, **changes: object) -> list[Issue]:
    chosen = f"learned:{load_model(model).digest}"
    return list(parse_spec(raw(tiny(cost_model=chosen, **changes)), Library(find_model=OneModel(model))).warnings)


def test_a_model_of_another_device_than_the_profile_s_is_warned_of() -> None:
    (warning,) = warned(shipped_models()["cpu-epyc"])
    assert (warning.code, warning.severity, warning.pointer) == ("other-device", "warning", "/cost_model")
    for reported in ("cpu-epyc was measured on AMD EPYC", PROFILE, "8x H100-80GB"):
        assert reported in warning.message
    for way_out in (f"PUT /v1/hardware-profiles/{PROFILE}/cost-model", "roofline"):
        assert way_out in warning.hint


def test_a_model_of_the_profile_s_device_is_not_warned_of() -> None:
    model = fit(rows_from_json(benchmark_rows(device="nvidia h100 80gb hbm3")), name="lab", seed=0)
    assert warned(model) == []
    assert [warning.code for warning in warned(model, hardware__profile="dgx-a100-80g")] == ["other-device"]
    numbers = {"hbm_bytes": 8e10, "hbm_bytes_per_second": 2e12, "intra_host_bytes_per_second": 3e11}
    own = {"hardware__profile": "custom", "hardware__overrides": numbers}
    assert warned(model_bytes(), **own) == []  # the machine is what the user says that it is


def test_models_of_the_device_of_the_active_one_are_not_warned_of(shipped: str) -> None:
    assert parse_spec(raw(tiny(cost_model="learned"))).warnings == ()
    assert parse_spec(raw(tiny(cost_model=f"learned:{shipped}"))).warnings == ()
    other = parse_spec(raw(tiny(cost_model=f"learned:{shipped}", hardware__profile="dgx-a100-80g")))
    assert [warning.code for warning in other.warnings] == ["other-device"]


def test_an_unknown_profile_is_reported_once_and_not_repeated() -> None:
    spec = tiny(cost_model="learned", hardware__profile="nobody-has-this")
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(spec))
    assert [issue.pointer for issue in refused.value.issues] == ["/hardware/profile"]
    assert "nobody" not in str(refused.value.issues)


def test_a_learned_model_prices_no_requests() -> None:
    spec = tiny(cost_model="learned", objective="request_latency", serving={"samples_per_request": 64})
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(spec), Library(find_model=OneModel(model_bytes())))
    assert "/cost_model" in [issue.pointer for issue in refused.value.issues]


def test_digests_of_names() -> None:
    digest = "sha256:" + "0" * 64
    assert learned_digest(f"learned:{digest}") == digest
    assert learned_digest("learned:m@1") is learned_digest("learned") is learned_digest("roofline") is None
