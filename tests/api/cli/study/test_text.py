"""The table of a study's points: columns of the figures that some point has."""

from typing import Any

from api.cli.study.text import points_text


def point(key: str, **figures: Any) -> dict[str, Any]:
    known = {"num_hosts": 2, "num_ranks": 16, **figures}
    return {"key": key, "labels": {"hardware.num_hosts": key}, "state": "planned", "figures": known}


def head(*points: dict[str, Any]) -> list[str]:
    return points_text(points, {}, width=120).splitlines()[0].split()


def test_a_step_has_samples_and_a_request_has_its_rate() -> None:
    step = {**point("1", step_seconds=0.01, samples_per_second=1234.5), "relative_gap": 0.02}
    assert head(step) == ["num_hosts", "step", "gap", "samples/s", "hosts", "front"]
    serving = point("1", requests_per_second=9876.0, p99_seconds=0.0021, samples_per_second=None)
    assert head(serving) == ["num_hosts", "requests/s", "P99", "hosts", "front"]
    assert points_text([serving], {"1": "front"}, width=120).splitlines()[1].split() == [
        *("1", "9,876", "2.1", "ms", "2", "front")
    ]


def test_checkpoints_and_prices_have_columns_if_some_point_has_them() -> None:
    stored = point("1", checkpoint_write_bytes_per_second=2e9, checkpoint_stored_bytes=5e12, price_per_hour=98.3)
    text = points_text([stored, point("2")], {}, width=120).splitlines()
    assert text[0].split() == ["num_hosts", "written/s", "stored", "hosts", "per", "hour", "front"]
    assert text[1].split() == ["1", "2.0", "GB", "5.0", "TB", "2", "98.30"]
    assert text[2].split() == ["2", "2"]


def test_a_point_without_a_plan_has_its_state() -> None:
    none = {"key": "2", "labels": {"hardware.num_hosts": "2"}, "state": "no_plan"}
    assert points_text([none], {}, width=80).splitlines()[1].split() == ["2", "no", "plan"]
    assert points_text([point("1"), none], {}, width=80).splitlines()[2].split() == ["2", "no", "plan"]
