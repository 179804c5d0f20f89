"""Deduplicated ids as text: the share, what it takes, and the other way, also where it does not pay."""

from typing import Any

from planner.output.explain.text.index_dedup import index_dedup_lines

LOAD: dict[str, Any] = {
    "batch_ids": 1000.0,
    "unique_ids": 370.0,
    "removed_share": 0.63,
    "unique_seconds": 0.0002,
    "repeat_seconds": 0.0001,
    "merge_seconds": 0.0003,
    "objective_seconds_with": 0.0088,
    "objective_seconds_without": 0.01,
    "saved_seconds": 0.0012,
    "settings": [],
}


def text(is_used: bool, **changes: Any) -> str:
    used = {"use_index_dedup": True} if is_used else {}
    plan: Any = {**used, "index_dedup": {**LOAD, **changes}}
    return " ".join(" ".join(index_dedup_lines(plan)).split())


def test_what_is_left_out_and_what_it_takes_is_reported() -> None:
    found = text(True)
    assert found.startswith("Deduplicated ids: on 63% of the 1,000 ids of sequences in a rank's batch repeat others")
    assert "finding unique ids takes 200 us of every step, repeating rows 100 us" in found
    assert found.endswith("the same shards without it: 10 ms, 1.2 ms longer")


def test_a_setting_that_does_not_pay_says_so() -> None:
    found = text(True, objective_seconds_without=0.008)
    assert found.endswith("the same shards without it: 8 ms, 800 us shorter; deduplication does not pay")
    off = text(False, objective_seconds_without=0.008)
    assert "Deduplicated ids: off" in off
    assert "could be left out" in off
    assert off.endswith("the same shards with it: 8.8 ms, 800 us longer")
    assert text(False).endswith("with it: 8.8 ms, 1.2 ms shorter; deduplication would pay")


def test_settings_are_listed() -> None:
    listed = [
        {"use_index_dedup": False, "state": "ruled_out", "objective_seconds": None, "lower_bound_seconds": 0.0095},
        {"use_index_dedup": True, "state": "planned", "objective_seconds": 0.0088, "lower_bound_seconds": 0.0},
    ]
    assert text(True, settings=listed).endswith("off - 9.5 ms cannot win on 8.8 ms - chosen")


def test_other_plans_have_no_such_lines() -> None:
    assert index_dedup_lines({}) == []  # type: ignore[typeddict-item]
