"""The benchmark of group sizes compares a solve with every size planned alone."""

from benchmarks.replicas.group_sizes import compare, random_problem, rows
from planner.solver.partitioners.base import SolveLimits

LIMITS = SolveLimits(time_limit_seconds=900.0, work_limit_seconds=0.5)


def test_models_are_seeded_and_lie_in_both_ways() -> None:
    assert random_problem(3, 2) == random_problem(3, 2)
    assert random_problem(3, 2).tables != random_problem(4, 2).tables
    both = [random_problem(seed, 2).replica_groups for seed in (0, 1)]
    assert [groups.use_inter_host_allreduce for groups in both if groups is not None] == [False, True]


def test_a_solve_is_compared_with_all_sizes() -> None:
    found = compare(random_problem(1, 2), LIMITS)
    assert list(found.sizes) == [2, 4, 8, 16]
    assert found.best_seconds == min(found.sizes.values()) == found.sizes[found.best_size]
    assert found.excess == found.chosen_seconds / found.best_seconds - 1
    assert found.bound_seconds <= found.best_seconds


def test_the_last_line_counts_the_models() -> None:
    *_, last = rows(1, [1], LIMITS)
    assert last.startswith("1 models: the same size in ")
