"""Which phases and ranks a plan waits for: the arithmetic by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Evidence, Phase
from planner.output.explain.bottlenecks import binding_phases, seconds_on_binding_ranks
from planner.solver.evaluate import rank_loads
from planner.solver.problem import Objective, RelaxationHint, SolverProblem
from tests.planner.solver.test_evaluate import APART, two_tables
from tests.support.planning.builders import make_assignment

EVIDENCE = np.array([Evidence.MEASURED, Evidence.ESTIMATED], dtype=np.int8)
NONE = np.zeros(2, dtype=np.int64)
GUIDE = RelaxationHint(option=NONE, second_option=NONE, slowest_seconds=np.array([2.5, 3.5]), memory_price=np.zeros(1))


def windowed(priced: SolverProblem) -> SolverProblem:
    return replace(priced, phase_window_seconds=np.array([4.5, 0.0]))


def test_slowest_ranks_share_and_what_is_hidden() -> None:
    """Loads are [5, 1], [0, 0], [3, 4], [3, 4]; of the first phase 4.5 are hidden: 0.5 + 4 = 4.5 in all."""
    priced = windowed(two_tables())
    first, second = binding_phases(priced, rank_loads(priced, APART).seconds, EVIDENCE, GUIDE, np.array([0.5, 0.25]))
    assert (first.phase, first.ranks, first.evidence) == (Phase(0), (0,), Evidence.MEASURED)
    assert (first.seconds, first.mean_seconds, first.hidden_seconds, first.exposed_seconds) == (5, 2.75, 4.5, 0.5)
    assert first.objective_share == pytest.approx(0.5 / 4.5)
    assert (second.ranks, second.seconds, second.hidden_seconds) == ((2, 3), 4, 0)
    assert second.objective_share == pytest.approx(4 / 4.5)
    assert (first.relaxed_seconds, second.relaxed_seconds) == (0.0, 3.75)  # 2.5 + 0.5 are less than what is hidden


def test_relaxed_seconds_are_those_that_the_objective_counts() -> None:
    """Of 2.5 + 0.5 the window hides 2; a phase with the weight 2 counts twice."""
    priced = replace(two_tables(), phase_window_seconds=np.array([2.0, 0.0]), phase_weight=np.array([1.0, 2.0]))
    phases = binding_phases(priced, rank_loads(priced, APART).seconds, EVIDENCE, GUIDE, np.array([0.5, 0.25]))
    assert [one.relaxed_seconds for one in phases] == [1.0, 7.5]


def test_for_the_slowest_rank_all_phases_are_its_own() -> None:
    """Ranks 2 and 3 take 3 + 4 = 7; windows do not count there."""
    priced = replace(windowed(two_tables()), objective=Objective.MAX_RANK_TIME)
    phases = binding_phases(priced, rank_loads(priced, APART).seconds, EVIDENCE, GUIDE, np.array([0.5, 0.25]))
    assert [(one.seconds, one.hidden_seconds, one.ranks) for one in phases] == [(3, 0, (2, 3)), (4, 0, (2, 3))]
    assert [one.objective_share for one in phases] == pytest.approx([3 / 7, 4 / 7])
    assert [one.relaxed_seconds for one in phases] == [None, None]


def test_ranks_within_one_percent_bind_and_uncounted_phases_do_not() -> None:
    priced = replace(two_tables(), phase_weight=np.array([1.0, 0.0]))
    seconds = np.array([[100.0, 1.0], [99.0, 1.0], [98.9, 500.0], [0.0, 1.0]])
    (only,) = binding_phases(priced, seconds, EVIDENCE, None, np.zeros(2))
    assert only.ranks == (0, 1)
    assert only.relaxed_seconds is None


def test_tables_weigh_what_they_put_on_the_slowest_ranks() -> None:
    """Rank 0 is the slowest of phase 0 with table 0 alone (5 s), rank 2 of phase 1 with table 1 alone (4 s)."""
    priced = two_tables()
    seconds = rank_loads(priced, APART).seconds
    assert seconds_on_binding_ranks(priced, APART, seconds).tolist() == [5, 4]
    hidden = replace(priced, phase_window_seconds=np.array([5.0, 0.0]))
    assert seconds_on_binding_ranks(hidden, APART, seconds).tolist() == [0, 4]
    slowest = replace(priced, objective=Objective.MAX_RANK_TIME)
    assert seconds_on_binding_ranks(slowest, APART, seconds).tolist() == [0, 7]


def test_slow_ranks_and_pieces_everywhere_weigh_what_they_take() -> None:
    """Table 0 everywhere (2 s in each phase) and table 1 on host 1: rank 3, twice as slow, has 4 + 6 and 4 + 8."""
    slowdown = np.ones((4, 2))
    slowdown[3] = 2.0
    priced = replace(two_tables(), rank_slowdown=slowdown)
    everywhere = make_assignment([(4, 0), (5, 1)])
    seconds = rank_loads(priced, everywhere).seconds
    assert seconds_on_binding_ranks(priced, everywhere, seconds).tolist() == [4 + 4, 6 + 8]
