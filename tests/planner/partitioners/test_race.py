"""A race: everyone runs, the better third runs longer, and nobody is lost."""

from dataclasses import dataclass
from typing import cast

import pytest

from planner.partitioners.chain import Chain
from planner.partitioners.race import num_rounds, race


@dataclass
class Runner:
    """What a race sees of a chain: how good it is, here the better the longer it ran."""

    name: int
    times: int = 0

    @property
    def rating(self) -> tuple[bool, float]:
        return False, self.name - 0.1 * self.times


def run_all(count: int, most_runs: int = 1000) -> tuple[list[Runner], list[tuple[int, int]]]:
    """Race so many, of which the first is the worst; return the ranking and who ran how long."""
    runs: list[tuple[int, int]] = []

    def run(chain: Chain, times: int) -> bool:
        runner = cast("Runner", chain)
        runner.times += times
        runs.append((runner.name, times))
        return len(runs) < most_runs

    field = [Runner(name) for name in reversed(range(count))]
    return cast("list[Runner]", race(cast("list[Chain]", field), run)), runs


def test_the_better_third_runs_three_times_as_long() -> None:
    ranking, runs = run_all(9)
    assert runs == [*((name, 1) for name in reversed(range(9))), (0, 3), (1, 3), (2, 3), (0, 9)]
    assert [runner.name for runner in ranking] == list(range(9))


@pytest.mark.parametrize(("count", "rounds"), [(1, 1), (2, 1), (3, 2), (7, 2), (8, 3), (9, 3), (27, 4)])
def test_rounds_are_as_many_as_are_run(count: int, rounds: int) -> None:
    _, runs = run_all(count)
    assert len({times for _, times in runs}) == num_rounds(count) == rounds


def test_a_race_that_ends_early_still_ranks_all_who_ran() -> None:
    ranking, runs = run_all(9, most_runs=4)
    assert len(runs) == 4
    assert [runner.name for runner in ranking] == [5, 6, 7, 8]
    ranking, runs = run_all(9, most_runs=10)
    assert runs[9:] == [(0, 3)]
    assert len(ranking) == 9
