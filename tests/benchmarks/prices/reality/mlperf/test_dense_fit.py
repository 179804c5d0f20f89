"""The fit finds the two numbers that steps were made with, and its numbers go into every profile with a rate."""

import numpy as np
import pytest

from benchmarks.prices.reality.mlperf import dense_fit
from benchmarks.prices.reality.mlperf.dense_fit import Configuration, fitted
from benchmarks.prices.reality.mlperf.model import Job
from benchmarks.prices.reality.mlperf.runs import Settings

JOB = Job(profile="dgx-h100-80g", num_hosts=1, ranks_per_host=8, global_batch=8, is_mixed_precision=True)
SETTINGS = Settings(sharding_plan="auto", mem_comm_bw_ratio=7.0, dp_sharding_threshold_gb=0.0)


def made_up(noise: float) -> list[Configuration]:
    """Steps of an efficiency of 0.5 and an overhead of 0.4 ms."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        sparse, dense = rng.uniform(5e-4, 3e-3, 2)
        bare = sparse + dense / dense_fit.EFFICIENCIES
        step = (sparse + dense / 0.5 + 4e-4) * rng.uniform(1 - noise, 1 + noise)
        found.append(Configuration(platform="X", job=JOB, settings=SETTINGS, step_seconds=step, without_overhead=bare))
    return found


def test_exact_steps_give_their_numbers() -> None:
    fit = fitted(made_up(0.0))
    assert fit.efficiency == 0.5
    assert fit.overhead_seconds == pytest.approx(4e-4)
    assert np.abs(fit.left_out_errors).max() < 1e-9


def test_noise_widens_the_intervals() -> None:
    fit = fitted(made_up(0.1))
    low, high = fit.efficiency_interval
    assert low < high
    assert low <= 0.5 <= high
    assert 0.02 < np.abs(fit.left_out_errors).mean() < 0.15
