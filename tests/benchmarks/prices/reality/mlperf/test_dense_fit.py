"""The fit finds the two numbers that steps were made with, and its numbers go into every profile with a rate."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prices.reality.mlperf import dense_fit
from benchmarks.prices.reality.mlperf.dense_fit import Configuration, fitted
from benchmarks.prices.reality.mlperf.model import Job
from benchmarks.prices.reality.mlperf.runs import Settings

JOB = Job(profile="dgx-h100-80g", num_hosts=1, ranks_per_host=8, global_batch=8, is_mixed_precision=True)
SETTINGS = Settings(sharding_plan="auto", mem_comm_bw_ratio=7.0, dp_sharding_threshold_gb=0.0)


def made_up(noise: float) -> list[Configuration]:
    """Steps of an efficiency of 0.5, half of the backward seconds and an overhead of 0.4 ms."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        sparse, dense, backward = rng.uniform(5e-4, 3e-3, 3)
        step = (sparse + 0.5 * backward + dense / 0.5 + 4e-4) * rng.uniform(1 - noise, 1 + noise)
        found.append(
            Configuration(
                platform="X",
                job=JOB,
                settings=SETTINGS,
                step_seconds=step,
                without_overhead=sparse + backward + dense / dense_fit.EFFICIENCIES,
                backward_seconds=backward,
            )
        )
    return found


def test_exact_steps_give_their_numbers() -> None:
    fit = fitted(made_up(0.0))
    assert fit.numbers == pytest.approx((0.5, 0.5, 4e-4))
    assert np.abs(fit.left_out_errors).max() < 1e-9


def test_noise_widens_the_limits() -> None:
    fit = fitted(made_up(0.1))
    for low, true, high in zip(fit.lower, (0.5, 0.5, 4e-4), fit.upper, strict=True):
        assert low < high
        assert low <= true <= high
    assert 0.02 < np.abs(fit.left_out_errors).mean() < 0.15


def test_numbers_go_into_profiles_with_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second fit replaces the numbers of the first."""
    rate = '    "fp16_flops_per_second": {"value": 1},\n'
    (tmp_path / "dgx-h100-80g.json").write_text("{\n" + rate + '    "hbm_bytes": {}\n}\n')
    (tmp_path / "cpu.json").write_text('{\n    "hbm_bytes": {}\n}\n')
    monkeypatch.setattr(dense_fit, "_PROFILES", tmp_path)
    monkeypatch.setattr(dense_fit, "HUGECTR", tmp_path / "hugectr.txt")
    for _ in range(2):
        dense_fit.write(fitted(made_up(0.0)), 20)
    written = json.loads((tmp_path / "dgx-h100-80g.json").read_text())
    assert list(written) == ["fp16_flops_per_second", "dense_efficiency", "step_overhead_seconds", "hbm_bytes"]
    assert written["dense_efficiency"]["value"] == 0.5
    assert written["dense_efficiency"]["evidence"] == "measured"
    assert list(json.loads((tmp_path / "cpu.json").read_text())) == ["hbm_bytes"]
    assert json.loads((tmp_path / "hugectr.txt").read_text())["backward_share"] == 0.5
