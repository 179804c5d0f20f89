"""Rules of a checkpoint, one message each."""

from typing import Any

import pytest

from planner.domain.problem.checkpoint import Checkpoint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interval_steps": 0}, "interval_steps >= 1"),
        ({"policy": "sometimes"}, "policy to be one of full, one_shot"),
        ({"policy": "one_shot", "full_every": 0}, "full_every >= 1"),
        ({"full_every": 2}, "full_every 1 where every checkpoint is full"),
        ({"bits": 7}, "bits to be one of 32, 16, 8, 4, 2"),
        ({"upload_bytes_per_second": 0.0}, "upload_bytes_per_second > 0"),
        ({"download_bytes_per_second": float("nan")}, "download_bytes_per_second > 0"),
        ({"intervals_between_failures": float("inf")}, "intervals_between_failures > 0"),
    ],
    ids=str,
)
def test_each_rule_has_its_message(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Checkpoint(**{"interval_steps": 10, **changes})


def test_steps_between_failures() -> None:
    assert Checkpoint(interval_steps=10, intervals_between_failures=2.5).steps_between_failures == 25
