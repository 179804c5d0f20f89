"""The verdict on a plan: against others, distance to the best, the longest phase, how well prices are known."""

from dataclasses import replace
from typing import Any

import pytest

from planner.output.explain.text.verdict import verdict_text
from planner.output.explain.verdict import verdict_of
from planner.output.exporters.generic import to_document
from tests.support.planning.long_plans import compact, explain_plan
from tests.support.planning.plan_documents import document
from tests.support.planning.whole_plan import whole_plan

PREDICTION = {
    "coverage": 0.9,
    "lower_seconds": 4.5e-3,
    "upper_seconds": 6e-3,
    "shares": {"learned": 0.2, "measured": 0.41, "analytic": 0.39},
    "num_fallbacks": 0,
    "fallbacks": [],
    "analytic_phases": [],
}


def text(plan: dict[str, Any]) -> str:
    return verdict_text(verdict_of(compact(plan)))  # type: ignore[arg-type]


def test_it_says_how_near_the_best_what_the_step_waits_for_and_how_well_prices_are_known() -> None:
    # 3 of 5 ms are forward_compute, of rank 1; 4.5 and 6 ms are 90% and 120% of 5 ms
    assert text(document(prediction=PREDICTION)) == (
        "at most 11.11% slower than the best possible plan; 60% of the time is forward_compute (rank 1 is slowest);"
        " prices 61% measured, -10% to +20%"
    )


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (None, "how near the best plan is not known"),
        (1e3, "how near the best plan is not known"),
        (0.0, "no plan is faster"),
        (0.0004, "at most 0.04% slower than the best"),
        (4e-5, "less than 0.01% slower than the best"),
    ],
)
def test_a_bound_that_says_nothing_gives_no_figure(gap: float | None, words: str) -> None:
    plan = document()
    plan["objective"] = plan["objective"] | {"relative_gap": gap}
    assert text(plan).startswith(words)


def test_what_dense_compute_hides_is_no_part_of_the_step() -> None:
    plan = document()
    plan["phases"][0] = plan["phases"][0] | {"hidden_seconds": 2.5e-3}
    assert "80% of the time is forward_comm" in text(plan)  # 2 of 0.5 + 2 ms


def test_other_objectives_have_the_phases_of_the_rank_that_takes_longest() -> None:
    plan = document()
    plan["objective"] = plan["objective"] | {"name": "max_rank_time"}
    assert "75% of the time is forward_compute (rank 1 is slowest)" in text(plan)  # 3 of 3 + 1 ms


def test_a_plan_without_seconds_has_no_phase() -> None:
    assert text(document(phases=[])) == "at most 11.11% slower than the best possible plan"


def test_the_long_text_begins_with_it() -> None:
    heading = " ".join(explain_plan(document(prediction=PREDICTION)).split("\n\n")[0].split())
    assert heading.endswith(text(document(prediction=PREDICTION)))


def baseline(name: str, state: str = "legal", ratio: float | None = None) -> dict[str, Any]:
    seconds = None if ratio is None else ratio * 0.005
    return {"name": name, "state": state, "objective_seconds": seconds, "ratio": ratio, "issue": None, "detail": None}


@pytest.mark.parametrize(
    ("baselines", "words"),
    [
        ([baseline("torchrec_greedy", ratio=3.14)], "3.1x faster than the default (TorchRec's greedy, priced alike)"),
        ([baseline("torchrec_greedy", ratio=1.154)], "1.15x faster than the default (TorchRec's greedy, priced alike)"),
        ([baseline("torchrec_greedy", ratio=1.004)], "as fast as the default (TorchRec's greedy, priced alike)"),
        ([baseline("torchrec_greedy", ratio=0.8)], "1.25x slower than the default (TorchRec's greedy, priced alike)"),
        ([baseline("torchrec_greedy", "no_plan")], "the default (TorchRec's greedy) finds no plan that fits"),
        ([baseline("torchrec_greedy", "illegal", 2.0)], "the default (TorchRec's greedy) gives no plan that works"),
        (
            [baseline("torchrec_greedy", "illegal", 2.0), baseline("table_wise_by_size", ratio=4.0)],
            "4.0x faster than whole tables, placed by size (priced alike)",
        ),
        (
            [baseline("torchrec_greedy", "not_made"), baseline("table_wise_by_size", "illegal", 2.0)],
            "placing whole tables by size gives no plan that works",
        ),
        (
            [
                baseline("torchrec_greedy", ratio=3.0),
                baseline("table_wise_by_size", ratio=4.0),
                baseline("previous_plan", ratio=1.2),
            ],
            "3.0x faster than the default (TorchRec's greedy, priced alike); 1.20x faster than the plan that runs now",
        ),
    ],
)
def test_it_begins_with_what_the_plan_is_compared_with(baselines: list[dict[str, Any]], words: str) -> None:
    assert text(document(baselines=baselines)).startswith(f"{words}; at most 11.11%")


def test_the_document_has_the_verdict_in_words_and_figures() -> None:
    plan = to_document(whole_plan(), name="m", spec_digest="sha256:s", hardware_profile="test")
    assert plan["verdict"] is not None
    assert plan["verdict"]["text"] == verdict_text(verdict_of(plan))
    assert plan["verdict"]["most_above_best"] == plan["objective"]["relative_gap"]
    seconds = plan["objective"]["seconds"]
    assert [(one["name"], one["ratio"]) for one in plan["baselines"] or ()] == [
        ("torchrec_greedy", 2.0 / seconds),
        ("table_wise_by_size", None),
    ]
    bare = to_document(replace(whole_plan(), baselines=()), name="m", spec_digest="sha256:s", hardware_profile="test")
    assert bare["baselines"] is None
    assert bare["plan_digest"] == plan["plan_digest"]  # what a plan is compared with determines nothing
