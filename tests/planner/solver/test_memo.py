"""What is derived from a problem is derived once, and again for a changed one."""

from dataclasses import dataclass, replace

from planner.solver.memo import forget_derived, memoized_on_problem


@dataclass(frozen=True)
class Problem:
    size: int


def test_derived_once_for_an_object_and_again_for_its_copy() -> None:
    calls: list[int] = []

    @memoized_on_problem
    def doubled(problem: Problem) -> int:
        calls.append(problem.size)
        return 2 * problem.size

    problem = Problem(3)
    assert [doubled(problem), doubled(problem)] == [6, 6]
    assert calls == [3]
    assert doubled(replace(problem, size=4)) == 8
    assert problem == Problem(3)
    forget_derived(problem)
    assert doubled(problem) == 6
    assert calls == [3, 4, 3]
    assert vars(problem)["size"] == 3
