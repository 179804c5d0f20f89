"""A whole step as text: what it takes, what is hidden, and nothing where dense compute is not timed."""

from typing import Any

from cost_models.analytic.roofline import RooflineModel
from planner.domain.problem.dense import Dense
from planner.verification.plan_from_placement import plan_of_placement
from tests.planner.verification.test_evaluate_placement import one_table_plan
from tests.support.planning.builders import make_problem, make_table
from tests.support.planning.long_plans import explain_plan, to_document


def document_of(dense: Dense) -> Any:
    _, placement = one_table_plan()
    plan = plan_of_placement(make_problem(make_table(dim=128), dense=dense), placement, RooflineModel())
    return to_document(plan, name="m", spec_digest="sha256:s", hardware_profile="test")


def test_the_parts_of_a_step_are_reported_in_80_columns() -> None:
    document = document_of(Dense(forward_seconds=0.002, backward_seconds=0.004, parameter_bytes=1e10))
    text = explain_plan(document)
    reported = text[text.index("Whole step") :].split("\n\n")[0]
    assert max(map(len, reported.splitlines())) <= 80
    words = " ".join(reported.split())
    assert f"{document['whole_step']['samples_per_second']:,.0f} samples per second" in words
    assert "dense compute 2 ms forward, 4 ms backward" in words
    assert "all-reduce of dense gradients" in words


def test_a_step_without_gradients_has_no_all_reduce() -> None:
    assert "all-reduce of dense gradients" not in explain_plan(document_of(Dense(forward_seconds=0.002)))


def test_a_plan_without_dense_seconds_has_no_such_lines() -> None:
    document = document_of(Dense(parameter_bytes=1e6))
    assert document["whole_step"] is None
    assert "Whole step" not in explain_plan(document)
    del document["whole_step"]  # as plans of earlier versions
    assert "Whole step" not in explain_plan(document)
