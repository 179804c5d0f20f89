"""Fronts against brute force, and cutoffs that lose no point of a front."""

import itertools
import math
import random

import pytest

from api.services.studies.rules.base import PLANNED, PointOutcome
from api.services.studies.rules.figures import Figures, Machines, machine_figures, with_step
from api.services.studies.rules.front import longest_useful_step, standings

NAMES = ("samples_per_second", "num_hosts", "price_per_billion_samples")


def figures(step_seconds: float, *, hosts: int = 1, price: float = 10.0, batch: int = 100) -> Figures:
    machines = Machines(num_hosts=hosts, num_ranks=8 * hosts, batch_size_per_rank=batch, price_per_host_hour=price)
    return with_step(machine_figures(machines), step_seconds, is_whole_step=True)


def outcome(found: Figures, at_best: Figures) -> PointOutcome:
    return PointOutcome(state=PLANNED, figures=found, at_best=at_best)


def costs(one: Figures) -> tuple[float, ...]:
    assert one.samples_per_second is not None
    assert one.price_per_billion_samples is not None
    return (-one.samples_per_second, one.num_hosts, one.price_per_billion_samples)


def dominates(better: tuple[float, ...], worse: tuple[float, ...]) -> bool:
    return better != worse and all(a <= b for a, b in zip(better, worse, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_a_front_is_that_of_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    points = {}
    for number in range(chance.randrange(2, 12)):
        hosts, step = chance.randrange(1, 5), chance.choice([1.0, 1.5, 2.0, 4.0])
        bound = step * chance.choice([0.5, 0.9, 1.0])
        points[str(number)] = outcome(figures(step, hosts=hosts), figures(bound, hosts=hosts))
    found = {str(one["key"]): one for one in standings(points, NAMES)}
    assert found.keys() == points.keys()
    for key, one in points.items():
        assert one.figures is not None
        assert one.at_best is not None
        others = [costs(other.figures) for name, other in points.items() if name != key and other.figures]
        mine, best = costs(one.figures), costs(one.at_best)
        is_off = any(dominates(other, mine) for other in others)
        is_hopeless = any(dominates(other, best) for other in others)
        expected = "front" if not is_off else "dominated" if is_hopeless else "undecided"
        assert found[key]["standing"] == expected
        if expected == "front":
            rivals = [costs(other.at_best) for name, other in points.items() if name != key and other.at_best]
            assert found[key]["is_proven"] == (not any(dominates(rival, mine) for rival in rivals))
        else:
            assert found[key]["is_proven"] == (expected == "dominated")
            assert found[key]["dominated_by"] is not None


def test_points_without_a_figure_are_in_no_front() -> None:
    points = {"a": outcome(figures(1.0), figures(1.0)), "b": PointOutcome(state="infeasible")}
    assert [one["key"] for one in standings(points, NAMES)] == ["a"]
    assert standings({"b": points["b"]}, NAMES) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_step_at_the_cutoff_is_dominated_and_one_below_is_not(seed: int) -> None:
    chance = random.Random(seed)
    known = [figures(chance.uniform(1, 4), hosts=chance.randrange(1, 4)) for _ in range(4)]
    hosts = chance.randrange(1, 4)
    machines = machine_figures(
        Machines(num_hosts=hosts, num_ranks=8 * hosts, batch_size_per_rank=100, price_per_host_hour=10.0)
    )
    limit = longest_useful_step(machines, known, NAMES)

    def is_dominated(step_seconds: float) -> bool:
        mine = costs(figures(step_seconds, hosts=hosts))
        return any(dominates(costs(one), mine) for one in known)

    if limit is None:
        assert not is_dominated(1e9)
    else:
        assert is_dominated(limit)
        assert not is_dominated(limit * (1 - 1e-5))


def test_figures_that_a_step_does_not_decide_leave_no_cutoff() -> None:
    known = [figures(1.0)]
    machines = machine_figures(Machines(num_hosts=2, num_ranks=16, batch_size_per_rank=100))
    for names in (["num_hosts"], ["samples_per_second", "fullest_rank_fraction"]):
        assert longest_useful_step(machines, known, names) is None
    assert longest_useful_step(machines, [], ["step_seconds"]) is None


def test_price_and_energy_of_samples() -> None:
    machines = Machines(
        num_hosts=2, num_ranks=16, batch_size_per_rank=1000, price_per_host_hour=36.0, watts_per_host=5000.0
    )
    found = with_step(machine_figures(machines), 0.01, is_whole_step=False)
    assert found.samples_per_second == pytest.approx(1.6e6)
    assert found.price_per_hour == 72.0
    # 72 an hour are 0.02 a second, in which 1.6 million samples are trained.
    assert found.price_per_billion_samples == pytest.approx(0.02 / 1.6e6 * 1e9)
    assert found.joules_per_thousand_samples == pytest.approx(10_000 / 1.6e6 * 1e3)


def test_serving_has_no_step() -> None:
    one = machine_figures(Machines(num_hosts=1, num_ranks=6, batch_size_per_rank=None))
    assert one.global_batch_size is None
    assert with_step(one, 1.0, is_whole_step=False).samples_per_second is None
    assert all(math.isfinite(value) for value in itertools.chain(costs(figures(1.0))))
