"""A race: everyone runs, the better third runs longer, and nobody is lost."""

import threading
from dataclasses import dataclass
from typing import cast

import pytest

from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.local_search import parallel_chains
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.parallel_chains import ChainThread, ParallelChains
from planner.solver.partitioners.local_search.successive_halving import halving_length, successive_halving
from tests.support.contracts.partitioner import LIMITS


@dataclass
class Runner:
    """What a race sees of a chain: how good it is, here the better the longer it ran."""

    name: int
    times: int = 0

    @property
    def rating(self) -> tuple[bool, float]:
        return False, self.name - 0.1 * self.times


Race = tuple[list[Runner], list[tuple[int, int]]]


def run_all(monkeypatch: pytest.MonkeyPatch, threads: int, count: int, most_runs: int = 1000) -> Race:
    """Race so many, of which the first is the worst; return the ranking and who ran how long."""
    monkeypatch.setattr(parallel_chains, "_THREADS", threads)
    runs: list[tuple[int, int]] = []
    writing = threading.Lock()

    def run(chain: Chain, times: int, _: ChainThread) -> bool:
        runner = cast("Runner", chain)
        runner.times += times
        with writing:
            runs.append((runner.name, times))
        return len(runs) < most_runs

    field = [Runner(name) for name in reversed(range(count))]
    side_by_side = ParallelChains(Effort(LIMITS))
    return cast("list[Runner]", successive_halving(cast("list[Chain]", field), run, side_by_side)), runs


def test_the_better_third_runs_three_times_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking, runs = run_all(monkeypatch, 1, 9)
    assert runs == [*((name, 1) for name in reversed(range(9))), (0, 3), (1, 3), (2, 3), (0, 9)]
    assert [runner.name for runner in ranking] == list(range(9))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 27])
def test_a_race_takes_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    _, runs = run_all(monkeypatch, 1, count)
    assert sum(times for _, times in runs) == halving_length(count)


def test_two_threads_are_both_used_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking, runs = run_all(monkeypatch, 2, 9)
    assert len(ranking) == 9
    assert sorted(runs[9:]) == sorted([(0, 3), (1, 3), (2, 3), (3, 3), (0, 9), (1, 9)])
    assert halving_length(9, 2) == 5 + 2 * 3 + 9


def test_a_race_that_ends_early_still_ranks_all_who_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking, runs = run_all(monkeypatch, 1, 9, most_runs=4)
    assert len(runs) == 4
    assert [runner.name for runner in ranking] == [5, 6, 7, 8]
    ranking, runs = run_all(monkeypatch, 1, 9, most_runs=10)
    assert runs[9:] == [(0, 3)]
    assert len(ranking) == 9
