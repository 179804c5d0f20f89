"""What checkpoints take, as people read it."""

from typing import Any

from tests.planner.output.explain.text.test_plan import section
from tests.support.planning.long_plans import explain_plan
from tests.support.planning.plan_documents import GB, document

FULL: dict[str, Any] = {
    "bytes": 5 * GB,
    "snapshot_seconds": 0.1,
    "slowest_rank": 1,
    "upload_seconds": 5.37,
    "slowest_host": 0,
    "mean_upload_seconds": 5.0,
}
CHECKPOINT: dict[str, Any] = {
    "policy": "one_shot",
    "full_every": 12,
    "interval_steps": 20_000,
    "interval_seconds": 100.0,
    "full": FULL,
    "incremental": {**FULL, "bytes": GB, "snapshot_seconds": 0.02, "upload_seconds": 1.07},
    "mean_bytes": 2 * GB,
    "mean_write_bytes_per_second": 2e7,
    "stored_bytes": 6 * GB,
    "full_fp32_bytes": 20 * GB,
    "write_reduction": 10.0,
    "stored_reduction": 20 / 6,
    "restore_seconds": 3.22,
    "lost_seconds_per_step": 1.5e-5,
    "balanced": False,
    "snapshot_evidence": "measured",
    "warning": None,
}


def lines(**changes: Any) -> list[str]:
    return section(explain_plan(document(checkpoint={**CHECKPOINT, **changes})), "Checkpoints")


def test_sizes_times_and_price() -> None:
    found = lines()
    assert found[0] == "Checkpoints, one in 20,000 steps"
    assert found[2].split() == ["full", "5.0", "GB", "100", "ms", "1", "5.37", "s", "0", "5", "s"]
    assert found[3].split() == ["largest", "increment", "1.0", "GB", "20", "ms", "1", "1.07", "s", "0", "5", "s"]
    assert found[4].strip() == "one_shot: one in 12 checkpoints is full"
    reported = " ".join(line.strip() for line in found[5:])
    assert "20.0 MB per second are written on average (1/10 of full fp32)" in reported
    assert "a restore needs 6.0 GB at most (1/3.33 of full fp32); a full checkpoint in fp32 has 20.0 GB" in reported
    assert "an interval takes 100 s, a restore reads for 3.22 s" in reported
    assert "15 us per step, no part of the objective (snapshot rates measured)" in reported


def test_full_checkpoints_alone_and_balanced() -> None:
    found = lines(policy="full", full_every=1, incremental=None, balanced=True)
    assert found[3].strip() == "every checkpoint is full"
    reported = " ".join(line.strip() for line in found[4:])
    assert "a part of the objective, which counts every rank at an equal part of its host's rate" in reported
    assert "no part" not in " ".join(found)


def test_a_late_upload_is_reported_with_the_way_out() -> None:
    reported = " ".join(line.strip() for line in lines(warning="host 0 uploads for long: use fewer checkpoint.bits"))
    assert "too late: host 0 uploads for long: use fewer checkpoint.bits" in reported


def test_lines_are_not_too_wide() -> None:
    huge = {**FULL, "bytes": 1e18, "snapshot_seconds": 1234.5, "slowest_rank": 4095, "slowest_host": 4095}
    huge |= {"upload_seconds": 1.23e9, "mean_upload_seconds": 1.23e9}
    found = lines(full=huge, incremental=huge, interval_steps=10**9, warning="word " * 40)
    assert all(len(line) <= 80 for line in found)


def test_a_plan_of_an_earlier_version_has_no_amounts() -> None:
    named = ("mean_bytes", "mean_write_bytes_per_second", "stored_bytes", "full_fp32_bytes")
    earlier = {key: value for key, value in CHECKPOINT.items() if key not in named and "reduction" not in key}
    found = " ".join(section(explain_plan(document(checkpoint=earlier)), "Checkpoints"))
    assert "on average" not in found
    assert "a restore reads for 3.22 s" in found


def test_nothing_is_stated_without_checkpoints() -> None:
    for plan in (document(), document(checkpoint=None)):
        assert "Checkpoints" not in explain_plan(plan)
