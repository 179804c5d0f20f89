"""Waiting times against a queue that is run, its mean, and what is known of its ends."""

import math

import numpy as np
import pytest

from cost_models.queues import md1
from cost_models.queues.md1 import highest_rate, longest_service, time_quantile, waiting_services


def waited(utilization: float, number: int, seed: int) -> np.ndarray:
    """What every one of so many arrivals waits, in services: that of the one before, a service more, less the gap.

    The greatest of all partial sums, seen from each arrival (Lindley).
    """
    gaps = np.random.default_rng(seed).exponential(1 / utilization, number)
    sums = np.concatenate([[0.0], np.cumsum(1 - gaps)])
    return sums - np.minimum.accumulate(sums)


@pytest.mark.parametrize("utilization", [0.2, 0.5, 0.8])
def test_quantiles_are_those_of_a_queue_that_is_run(utilization: float) -> None:
    runs = waited(utilization, 1_000_000, seed=7)
    for fraction in (0.5, 0.9, 0.99):
        expected = np.quantile(runs, fraction)
        assert waiting_services(utilization, fraction) == pytest.approx(expected, rel=0.04, abs=0.01), fraction


@pytest.mark.parametrize("utilization", [0.1, 0.6, 0.9])
def test_the_mean_is_that_of_pollaczek_and_khinchine(utilization: float) -> None:
    """rho / (2 (1 - rho)) services: the integral of all quantiles, the rare ones at points that are dense there."""
    rest = np.geomspace(1, 1e-9, 1_500)
    middles = np.sqrt(rest[1:] * rest[:-1])
    mean = sum(
        width * waiting_services(utilization, 1 - middle)
        for width, middle in zip(rest[:-1] - rest[1:], middles.tolist(), strict=True)
    )
    assert mean == pytest.approx(utilization / (2 * (1 - utilization)), rel=0.01)


def test_the_tail_goes_on_where_single_services_end(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = [waiting_services(0.9, fraction) for fraction in (0.9, 0.99, 0.999)]
    monkeypatch.setattr(md1, "_EXACT", 10)
    waiting_services.cache_clear()
    assert exact[0] > 10
    assert [waiting_services(0.9, fraction) for fraction in (0.9, 0.99, 0.999)] == pytest.approx(exact, rel=1e-6)
    waiting_services.cache_clear()


def test_work_that_finds_the_server_idle_does_not_wait() -> None:
    assert waiting_services(0.3, 0.7) == 0
    assert waiting_services(0.3, 0.71) > 0
    assert time_quantile(3.0, 0.1, 0.7) == 0.1


def test_nothing_is_done_in_time_if_work_comes_faster_than_it_is_done() -> None:
    assert time_quantile(10.0, 0.1, 0.5) == math.inf


def test_more_work_waits_longer() -> None:
    found = [waiting_services(utilization, 0.99) for utilization in np.linspace(0.02, 0.999, 60).tolist()]
    assert found == sorted(found)


def test_limits_are_met_and_no_more() -> None:
    service = longest_service(400.0, 0.005, 0.99)
    assert time_quantile(400.0, service, 0.99) == pytest.approx(0.005)
    assert time_quantile(400.0, service * 1.001, 0.99) > 0.005
    assert highest_rate(service, 0.005, 0.99) == pytest.approx(400.0)
    assert highest_rate(0.006, 0.005, 0.99) == 0
