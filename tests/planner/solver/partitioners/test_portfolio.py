from dataclasses import replace

import pytest

from planner.solver.evaluate import objective_seconds, rank_loads
from planner.solver.partitioners import portfolio
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Outcome, Reason, SolverProblem
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import random_priced
from tests.support.thorough import thorough


class TestPortfolio(PartitionerContract):
    partitioner = Portfolio()
    exact = True


@thorough
def test_never_worse_than_greedy() -> None:
    for seed in range(5):
        priced = random_priced(seed, num_tables=5)
        values = []
        for partitioner in (Greedy(), Portfolio()):
            outcome = partitioner.solve(priced, LIMITS)
            assert outcome.assignment is not None
            values.append(objective_seconds(priced, rank_loads(priced, outcome.assignment).seconds))
        assert values[1] <= values[0] * (1 + 1e-12)


class Patient:
    """Finds what greedy finds, and remembers how long it might have looked."""

    name = "patient"

    def __init__(self) -> None:
        self.limits: list[SolveLimits] = []

    def solve(self, priced: SolverProblem, limits: SolveLimits, _: object) -> Outcome:
        self.limits.append(limits)
        return Greedy().solve(priced, limits)


class Ending:
    """Finds what greedy finds, ended by a limit."""

    name = "ending"

    def __init__(self, limit: str, reason: Reason = Reason.FEASIBLE) -> None:
        self.limit, self.reason = limit, reason

    def solve(self, priced: SolverProblem, limits: SolveLimits, _: object) -> Outcome:
        return replace(Greedy().solve(priced, limits), limit=self.limit, reason=self.reason)


@pytest.mark.parametrize(
    ("first", "second", "limit"),
    [
        (Ending("time"), Ending("deterministic_time"), "time"),
        (Ending("deterministic_time"), Ending("listed_cuts"), "listed_cuts"),
        (Ending("time"), Ending("listed_cuts", Reason.OPTIMAL), "listed_cuts"),
        (Ending("no_improvement"), Ending("deterministic_time"), "no_improvement"),
        (Ending("no_improvement"), Ending("time"), "time"),
        (Ending("no_improvement"), Ending("listed_cuts", Reason.OPTIMAL), "listed_cuts"),
    ],
)
def test_a_clock_that_cut_the_first_member_is_named(
    monkeypatch: pytest.MonkeyPatch, first: Ending, second: Ending, limit: str
) -> None:
    """The second one began with a plan that may not come out again; a proof holds whatever the first one found."""
    monkeypatch.setattr(portfolio, "_members", lambda _: [(first, 0.6), (second, 0.4)])
    assert Portfolio().solve(random_priced(0, num_tables=5), LIMITS).limit == limit


def test_by_the_clock_all_of_the_limit_is_there_to_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Patient()
    members = [(member, share) for share in (0.6, 0.4)]
    monkeypatch.setattr(portfolio, "_members", lambda _: members)
    limits = SolveLimits(time_limit_seconds=100.0, relative_gap=0.0, reproducible=False)
    Portfolio().solve(random_priced(0, num_tables=5), limits)
    assert [round(one.time_limit_seconds / 100, 1) for one in member.limits] == [0.6, 1.0]


def test_the_exact_search_has_most_where_it_often_proves_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """A portfolio gives 3 tables on 4 ranks more of its work than 30 tables, unless all cuts of these are listed."""
    small, large = (portfolio._members(random_priced(0, num_tables=tables)) for tables in (3, 30))  # noqa: SLF001
    assert [share for _, share in small] == [0.6, 0.4]
    assert [share for _, share in large] == [0.9, 0.1]
    monkeypatch.setattr(portfolio, "lists_all_cuts", lambda _: True)
    assert [share for _, share in portfolio._members(random_priced(0, num_tables=30))] == [0.6, 0.4]  # noqa: SLF001
