"""Memory over a step as text: the rank with the highest peak, bars to scale, and nothing where nothing is known."""

from typing import Any

from cost_models.analytic.roofline import RooflineModel
from planner.domain.plan.step_memory import MemoryPhase
from planner.domain.problem.dense import Dense
from planner.verification.plan_from_placement import plan_of_placement
from tests.planner.verification.test_evaluate_placement import one_table_plan
from tests.support.planning.builders import make_problem, make_table
from tests.support.planning.long_plans import explain_plan, to_document


def document_of(dense: Dense) -> Any:
    _, placement = one_table_plan()
    plan = plan_of_placement(make_problem(make_table(dim=128), dense=dense), placement, RooflineModel())
    return to_document(plan, name="m", spec_digest="sha256:s", hardware_profile="test")


def section(document: Any) -> list[str]:
    text = explain_plan(document)
    return text[text.index("Memory of rank") :].split("\n\n")[0].splitlines()


def test_phases_are_drawn_to_the_scale_of_the_device() -> None:
    # 20 of 80 GB of activations are a quarter of 44 characters
    lines = section(document_of(Dense(activation_bytes=20e9)))
    assert lines[0].endswith("over a step, of 80.0 GB")
    phases = [label for label in MemoryPhase.labels() if label not in ("stash", "restore")]  # nothing is stashed
    drawn = {line.split()[0]: line for line in lines[1 : 1 + len(phases)]}
    assert list(drawn) == phases
    assert drawn["dense_backward"].count("▒") == 11
    assert drawn["dense_backward"].count("·") == 33
    assert drawn["forward_compute"].count("▒") == 0
    assert "activations 20.0 GB" in " ".join(lines)
    assert any("besides, in dense_backward:" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_the_rank_with_the_highest_peak_is_shown() -> None:
    document = document_of(Dense())
    document["ranks"][2]["step_memory"]["peak_bytes"] += 10**9
    assert section(document)[0].startswith("Memory of rank 2 ")


def test_plans_of_earlier_versions_have_no_such_lines() -> None:
    document = document_of(Dense())
    for rank in document["ranks"]:
        del rank["step_memory"]
    assert "over a step" not in explain_plan(document)
