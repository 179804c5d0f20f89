"""How much better a plan is, and what is proven of both."""

from planner.output.explain.text.improvement import explain_improvement
from tests.support.planning.plan_documents import document


def costing(seconds: float, bound: float = 0.0) -> dict[str, object]:
    return document(objective={**document()["objective"], "seconds": seconds, "lower_bound_seconds": bound})


def test_gain_and_proof() -> None:
    text = explain_improvement(costing(0.006), costing(0.004, 0.0039), is_legal=True)
    assert "33.33% less" in text
    # 6 / 4 - 1 = 50%; 6 / 3.9 - 1 = 53.846..%, 4 / 3.9 - 1 = 2.564..%: what is at most is never rounded down
    assert "50.00% to 53.85% more" in " ".join(text.split())
    assert "at most 2.57% more" in " ".join(text.split())


def test_a_plan_that_is_as_good_is_stated_to_be() -> None:
    assert "no better plan was found" in explain_improvement(costing(0.004), costing(0.004, 0.004), is_legal=True)
    assert "25.00% more" in explain_improvement(costing(0.004), costing(0.005, 0.004), is_legal=True)


def test_nothing_is_proven_of_what_breaks_rules_or_without_a_bound() -> None:
    assert "breaks rules" in explain_improvement(costing(0.003), costing(0.004, 0.0039), is_legal=False)
    assert "proven" not in explain_improvement(costing(0.003), costing(0.004, 0.0039), is_legal=False)
    assert "proven" not in explain_improvement(costing(0.006), costing(0.004, 0.0), is_legal=True)
