"""What a learned model says of itself, as text."""

from typing import Any

from planner.output.explain.text.plan import explain_plan
from planner.output.exporters.generic import to_document
from tests.planner.orchestration.test_relinearise import solve, whole_tables
from tests.support.planning.launching_model import LaunchingModel


def text_of(model: LaunchingModel) -> tuple[str, dict[str, Any]]:
    found = solve(whole_tables(), model).plan
    assert found is not None
    document = to_document(found, name="m", spec_digest="sha256:s", hardware_profile="test")
    return explain_plan(document), document


def test_limits_shares_and_the_search_are_reported_in_80_columns() -> None:
    text, document = text_of(LaunchingModel(launch_seconds=3e-7))
    reported = text[text.index("Prediction") :].split("\n\n")[0]
    assert "probability of 0.9" in " ".join(reported.split())
    assert "are learned" in reported
    assert f"search {document['surrogate']['round']} of at most 4" in " ".join(reported.split())
    assert max(map(len, reported.splitlines())) <= 80


def test_a_plan_of_an_analytic_model_has_no_such_lines() -> None:
    _, document = text_of(LaunchingModel(launch_seconds=3e-7))
    assert "Prediction" not in explain_plan({**document, "prediction": None, "surrogate": None})


def test_fallbacks_are_named_up_to_a_number() -> None:
    text, document = text_of(LaunchingModel(launch_seconds=3e-7, most_lookups=1.0))
    assert len(document["prediction"]["fallbacks"]) == 7
    assert "and 3 more" in text
    assert "large (1 shard): lookups" in " ".join(text.split())


def test_phases_with_collectives_of_the_analytic_model_are_named() -> None:
    text, document = text_of(LaunchingModel(launch_seconds=3e-7))
    assert document["prediction"]["analytic_phases"] == [
        {"phase": phase, "reason": "all_to_all is not priced"}
        for phase in ("input_comm", "forward_comm", "backward_comm")
    ]
    assert "forward_comm: all_to_all is not priced" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_document_of_an_earlier_version_is_reported_without_them() -> None:
    text, document = text_of(LaunchingModel(launch_seconds=3e-7))
    earlier = {key: value for key, value in document["prediction"].items() if key != "analytic_phases"}
    reported = explain_plan({**document, "prediction": earlier})
    assert "collectives that" not in reported
    assert "collectives that" in text
