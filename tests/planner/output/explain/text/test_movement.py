"""The text of what moves from the previous plan."""

from typing import Any

from tests.planner.output.explain.text.test_plan import section
from tests.support.planning.long_plans import explain_plan
from tests.support.planning.plan_documents import GB, document

MOVEMENT: dict[str, Any] = {
    "previous_plan_digest": "sha256:" + 64 * "5",
    "moved_bytes": 2 * GB,
    "kept_bytes": 6 * GB,
    "new_bytes": 0,
    "most_sent": {"rank": 3, "bytes": GB},
    "most_received": {"rank": 1, "bytes": 2 * GB},
    "num_rank_pairs": 2,
    "by_rank_pair": [],
    "seconds": 0.25,
    "link_evidence": "measured",
    "previous_objective_seconds": 0.006,
    "previous_issue": None,
    "saved_seconds_per_step": 0.001,
    "break_even_steps": 250,
    "max_moved_bytes": None,
}


def reported(**changes: Any) -> str:
    lines = section(explain_plan(document(movement={**MOVEMENT, **changes})), "From the previous plan")
    assert all(len(line) <= 80 for line in lines)
    return " ".join(line.strip() for line in lines)


def test_a_gain_inside_the_interval_has_a_warning() -> None:
    doubtful = reported(saved_lower_seconds=-0.0005, saved_upper_seconds=0.002)
    assert (
        "but that lies inside the interval of the prediction, from 500 us more to 2 ms less: measure both" in doubtful
    )
    assert "interval" not in reported(saved_lower_seconds=0.0005, saved_upper_seconds=0.002)
    assert "interval" not in reported()  # of an earlier version


def test_bytes_ranks_time_and_break_even() -> None:
    text = reported()
    assert text.startswith("From the previous plan sha256:555555555555…")
    assert "2.0 GB move (25.0%), 6.0 GB stay" in text
    assert "between 2 pairs of ranks; rank 3 sends most, 1.0 GB, and rank 1 receives most, 2.0 GB" in text
    assert "about 250 ms (link speed measured)" in text
    assert "the previous plan would take 6 ms: 1 ms less per step; the move has paid for itself after 250 steps" in text


def test_a_plan_that_serves_saves_per_request() -> None:
    objective = {**document()["objective"], "name": "request_latency"}
    lines = section(explain_plan(document(movement=MOVEMENT, objective=objective)), "From the previous plan")
    text = " ".join(line.strip() for line in lines)
    assert "1 ms less per request; the move has paid for itself after 250 requests" in text
    assert "step" not in text


def test_a_plan_that_stays() -> None:
    text = reported(moved_bytes=0, previous_objective_seconds=0.005, saved_seconds_per_step=0.0, break_even_steps=None)
    assert "nothing moves; all 6.0 GB stay where they are" in text
    assert text.endswith("the previous plan would take 5 ms and stays")


def test_new_tables_a_limit_and_a_plan_that_is_no_longer_legal() -> None:
    text = reported(
        new_bytes=GB,
        max_moved_bytes=3 * GB,
        seconds=None,
        previous_objective_seconds=None,
        saved_seconds_per_step=None,
        previous_issue='table "t" is not placed',
    )
    assert "1.0 GB are of tables that are new or have another shape; at most 3.0 GB may move" in text
    assert "how fast is not known" in text
    assert 'the previous plan is no longer legal: table "t" is not placed' in text


def test_no_previous_plan_no_lines() -> None:
    for plan in (document(), document(movement=None)):
        assert "previous" not in explain_plan(plan)
