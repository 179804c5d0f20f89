"""Deduplication: its bytes over the rate of the memory, by phase, estimated and wide."""

import numpy as np
import pytest

from cost_models.analytic.index_dedup import dedup_seconds, has_dedup
from cost_models.hardware.hardware import Limit
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence, Phase
from tests.support.planning.builders import make_hardware

RATE = 2e12
IDS, UNIQUE, ROW_BYTES = np.array([1000.0, 10.0]), np.array([400.0, 10.0]), np.array([256.0, 64.0])


def test_every_phase_moves_its_bytes() -> None:
    found = dedup_seconds(IDS, UNIQUE, ROW_BYTES, make_hardware(hbm_bytes_per_second=RATE))
    assert found.seconds[Phase.INPUT_COMM] == pytest.approx((372 * 1010 + 24 * 410) / RATE)
    assert found.seconds[Phase.FORWARD_COMM] == pytest.approx((8 * 1010 + 2 * (1000 * 256 + 10 * 64)) / RATE)
    merged = 8 * 1010 + 3 * (1000 * 256 + 10 * 64) + 400 * 256 + 10 * 64
    assert found.seconds[Phase.BACKWARD_COMM] == pytest.approx(merged / RATE)
    assert np.count_nonzero(found.seconds) == 3
    assert set(found.evidence[found.seconds > 0].tolist()) == {Evidence.ESTIMATED}
    assert set(found.evidence[found.seconds == 0].tolist()) == {Evidence.MEASURED}


def test_limits_are_far_apart() -> None:
    hardware = make_hardware(hbm_bytes_per_second=RATE)
    stated, fast, slow = (
        dedup_seconds(IDS, UNIQUE, ROW_BYTES, hardware.at_limit(limit)).seconds[Phase.INPUT_COMM]
        for limit in (Limit.NONE, Limit.FASTEST, Limit.SLOWEST)
    )
    assert fast < 0.6 * stated
    assert slow > 1.6 * stated


def test_gpus_alone_have_it() -> None:
    profiles = ("dgx-h100-80g", "cpu-2s-genoa-200g")
    assert [has_dedup(load_profile(name)) for name in profiles] == [True, False]
    assert has_dedup(make_hardware())  # a machine that a user describes, with memory of accelerators
