"""Ordered objectives of a plan, in words."""

from typing import Any

from planner.output.explain.text.objectives import value_text
from tests.support.planning.long_plans import explain_plan
from tests.support.planning.plan_documents import document


def objective(name: str, unit: str, **changes: Any) -> dict[str, Any]:
    values = {"value": 0.5, "value_before": 0.75, "value_at_turn": 0.5, "lower_bound": 0.4}
    return {"name": name, "unit": unit, **values, "limits": {}, "points": [], **changes}


def test_each_objective_has_its_value_bound_and_limit() -> None:
    step = objective("step_time", "seconds", value=0.00303, value_before=0.003029, lower_bound=0.00297)
    fullest = objective("fullest_rank", "share", limits={"step_time": 0.0031})
    lines = explain_plan(document(objectives=[step, fullest])).splitlines()
    start = lines.index("Ordered objectives")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["value", "at", "least", "at", "most", "before", "its", "turn"],
        ["step_time", "3.03", "ms", "2.97", "ms", "3.1", "ms", "the", "same"],
        ["fullest_rank", "50.0%", "40.0%", "-", "75.0%"],
    ]


def test_plans_without_objectives_say_nothing_of_them() -> None:
    assert "Ordered objectives" not in explain_plan(document())
    assert "Ordered objectives" not in explain_plan(document(objectives=None))


def test_values_have_the_unit_of_their_objective() -> None:
    assert [value_text("bytes", 2.5e9), value_text("seconds", 0.002), value_text("share", 0.031)] == [
        "2.5 GB",
        "2 ms",
        "3.1%",
    ]
