"""Who is to blame for a gap, in words."""

from typing import Any

import pytest

from planner.output.explain.text.plan import explain_plan
from tests.support.planning.plan_documents import document

PARTS = {
    "balance_seconds": 3e-4,
    "packing_seconds": 1.5e-4,
    "choice_seconds": 5e-5,
    "refuted_seconds": 2e-4,
    "is_bound_final": False,
    "late_gain_seconds": 2e-5,
}


def text(reason: str = "FEASIBLE", **changes: Any) -> str:
    termination = {**document()["termination"], "reason": reason}
    return " ".join(explain_plan(document(gap_parts=PARTS | changes, termination=termination)).split())


def test_all_parts_are_named_largest_lever_first() -> None:
    assert (
        "of the gap of 500 us, 300 us at most can be gained with the same shards on other ranks; 150 us is lost"
        " because these shards do not divide evenly among ranks; 50 us is what they cost more than the mix of shardings"
        " that the bound assumes"
    ) in text()
    assert "refuted cases raised the bound by 200 us; the second half of the solve gained 20 us" in text()


def test_parts_that_are_nothing_are_left_out() -> None:
    found = text(packing_seconds=0.0, choice_seconds=1e-9, refuted_seconds=0.0, late_gain_seconds=None)
    assert "of the gap of 300 us, 300 us at most can be gained" in found
    assert "divide evenly" not in found
    assert "mix of shardings" not in found
    assert "refuted" not in found
    assert "second half" not in found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_bound_final": True}, "raised the bound by 200 us; a longer solve would not raise it"),
        ({"late_gain_seconds": 0.0}, "the second half of the solve found no better plan"),
    ],
)
def test_what_a_longer_solve_would_do(changes: dict[str, Any], words: str) -> None:
    assert words in text(**changes)


def test_a_proven_plan_and_one_of_an_earlier_version_blame_nothing() -> None:
    assert "of the gap" not in text(reason="OPTIMAL")
    assert "of the gap" not in explain_plan(document())
    assert "of the gap" not in text(balance_seconds=0.0, packing_seconds=0.0, choice_seconds=0.0)
