"""GB where bytes are asked for: the override is named, and the number that was probably meant is solved."""

from dataclasses import replace

import pytest

from cost_models.hardware.profiles_loader import load_profile
from planner.diagnosis.fixes.unit_slips import unit_slip_ladder
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem
from tests.support.planning.builders import make_problem


def problem(profile: str, by_rank: tuple[float, ...] | None = None, **overrides: float) -> Problem:
    hardware = load_profile(profile).with_overrides(overrides, dict.fromkeys(overrides, "bytes"))
    cluster = Cluster(hardware=hardware, num_hosts=1, ranks_per_host=2, hbm_bytes_by_rank=by_rank)
    return replace(make_problem(), cluster=cluster)


@pytest.mark.parametrize("profile", ["dgx-h100-80g", "custom"])
def test_a_number_of_gigabytes_becomes_bytes(profile: str) -> None:
    ladder = unit_slip_ladder(problem(profile, hbm_bytes=80.0))
    assert ladder is not None
    assert (ladder.kind, ladder.num_steps) == ("memory", 1)
    step = ladder.step(1)
    assert [(change.pointer, change.value) for change in step.changes] == [
        ("/hardware/overrides/hbm_bytes", 80 * 10**9)
    ]
    assert step.problem.cluster.bytes_by_rank()[:, 0].tolist() == [80e9, 80e9]
    expected = "hardware.overrides.hbm_bytes of 80 bytes looks like a slip of units: state 80.0 GB if that is meant"
    assert step.message == expected


def test_several_slips_are_one_step() -> None:
    ladder = unit_slip_ladder(problem("dgx-h100-80g", (80.0, 80e9), ddr_bytes=256.0))
    assert ladder is not None
    step = ladder.step(1)
    assert {change.pointer: change.value for change in step.changes} == {
        "/hardware/overrides/ddr_bytes": 256 * 10**9,
        "/hardware/overrides/hbm_bytes_by_rank": (80 * 10**9, 80 * 10**9),
    }
    assert step.problem.cluster.hbm_bytes_by_rank == (80e9, 80e9)


@pytest.mark.parametrize("stated", [{}, {"hbm_bytes": 0.0}, {"hbm_bytes": 1e9}, {"hbm_bytes": 80e15}])
def test_other_memory_is_left_alone(stated: dict[str, float]) -> None:
    """None stated, none there, less than usual, and far more: no memory of these is a reason for no plan."""
    assert unit_slip_ladder(problem("dgx-h100-80g", **stated)) is None
