"""What a cost model says of its own prediction, as text."""

from typing import Any

from tests.planner.orchestration.test_relinearise import solve, whole_tables
from tests.support.planning.launching_model import LaunchingModel
from tests.support.planning.long_plans import explain_plan, to_document


def text_of(model: LaunchingModel) -> tuple[str, dict[str, Any]]:
    found = solve(whole_tables(), model).plan
    assert found is not None
    document = to_document(found, name="m", spec_digest="sha256:s", hardware_profile="test")
    return explain_plan(document), document


def test_limits_shares_and_the_search_are_reported_in_80_columns() -> None:
    text, document = text_of(LaunchingModel(launch_seconds=3e-7))
    reported = text[text.index("Prediction") :].split("\n\n")[0]
    assert "each of these holds 90% of measurements" in " ".join(reported.split())
    assert "are learned" in reported
    assert f"search {document['surrogate']['round']} of at most 4" in " ".join(reported.split())
    assert max(map(len, reported.splitlines())) <= 80


def test_a_plan_of_a_model_without_limits_has_no_such_lines() -> None:
    _, document = text_of(LaunchingModel(launch_seconds=3e-7))
    assert "Prediction" not in explain_plan({**document, "prediction": None, "surrogate": None})


def test_an_analytic_plan_has_its_interval_and_nothing_of_learning() -> None:
    _, document = text_of(LaunchingModel(launch_seconds=3e-7))
    shares = {"learned": 0.0, "measured": 0.25, "analytic": 0.75}
    limits = {"lower_seconds": 0.95e-3, "upper_seconds": 1.44e-3, "num_fallbacks": 0, "analytic_phases": []}
    analytic = {
        **document,
        "objective": {**document["objective"], "seconds": 1.17e-3},
        "prediction": {**document["prediction"], **limits, "shares": shares},
        "surrogate": None,
    }
    reported = " ".join(explain_plan(analytic).split())
    assert "max_rank_time 1.17 ms, 950 us to 1.44 ms with every rank" in reported
    assert "25% of the seconds rest on measured numbers, 75% on others" in reported
    assert "learned" not in reported[reported.index("Prediction") :].split("Phases")[0]


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
