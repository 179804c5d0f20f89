"""What a gap consists of, in words."""

from typing import Any

import pytest

from tests.support.planning.long_plans import explain_plan
from tests.support.planning.plan_documents import document

PARTS = {
    "balance_seconds": 3e-4,
    "packing_seconds": 1.5e-4,
    "choice_seconds": 5e-5,
    "refuted_seconds": 2e-4,
    "is_bound_final": False,
}


def text(reason: str = "FEASIBLE", late_gain_seconds: float | None = 2e-5, **changes: Any) -> str:
    termination = {**document()["termination"], "reason": reason}
    provenance = {**document()["provenance"], "late_gain_seconds": late_gain_seconds}
    plan = document(gap_parts=PARTS | changes, termination=termination, provenance=provenance)
    return " ".join(explain_plan(plan).split())


def test_all_parts_are_named() -> None:
    assert (
        "the gap is 500 us: other ranks for the same shards gain at most 300 us; 150 us is lost because the shards do"
        " not divide evenly among ranks; the shards cost 50 us more than the mix of shardings that the bound assumes"
    ) in text()
    assert "branching raised the bound by 200 us; the second half of the solve gained 20 us" in text()


def test_parts_that_are_nothing_are_left_out() -> None:
    found = text(packing_seconds=0.0, choice_seconds=1e-9, refuted_seconds=0.0, late_gain_seconds=None)
    assert "the gap is 300 us: other ranks for the same shards gain at most 300 us" in found
    assert "divide evenly" not in found
    assert "mix of shardings" not in found
    assert "branching" not in found
    assert "second half" not in found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_bound_final": True}, "raised the bound by 200 us; a longer solve cannot raise the bound"),
        ({"is_bound_final": True, "refuted_seconds": 0.0}, "a longer solve cannot raise the bound"),
        ({"late_gain_seconds": 0.0}, "the second half of the solve gained less than 0.1%"),
    ],
)
def test_what_a_longer_solve_would_do(changes: dict[str, Any], words: str) -> None:
    assert words in text(**changes)


def test_a_proven_plan_and_one_of_an_earlier_version_have_no_parts() -> None:
    assert "the gap is" not in text(reason="OPTIMAL")
    assert "the gap is" not in explain_plan(document())
    assert "the gap is" not in text(balance_seconds=0.0, packing_seconds=0.0, choice_seconds=0.0)
