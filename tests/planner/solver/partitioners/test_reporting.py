"""Which plans a running search tells, and which it keeps to itself."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from planner.domain.plan.plan import Plan, PlanResult
from planner.orchestration.answers import incumbents
from planner.orchestration.answers.finish_plan import SolveContext
from planner.pipeline import plan
from planner.solver.partitioners.base import Incumbent, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Assignment, SolverProblem
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table


def test_what_could_not_be_finished_before_the_search_ends_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best plan is finished then in any case; telling it before would do so twice, and end late."""
    result = plan(
        make_problem(make_table("t", rows=1000, dim=64), cluster=make_cluster(1, 2)),
        cost_model=ROOFLINE,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1.0),
    )
    done, clock, heard = result.plan, [0.0], list[PlanResult]()
    assert done is not None

    def slow_finish(*_: object) -> Plan:
        clock[0] += 3.0
        return done

    monkeypatch.setattr(incumbents, "finish", slow_finish)
    monkeypatch.setattr(incumbents, "keeps_limits", lambda *_: True)
    monkeypatch.setattr(incumbents, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    nowhere = Assignment(piece_shape=np.zeros(0, dtype=np.int64), piece_site=np.zeros(0, dtype=np.int64))
    context = cast("SolveContext", SimpleNamespace(problem=None))
    teller = incumbents.IncumbentReporter(context, heard.append)
    teller.until_seconds = 100.0
    for objective, at_seconds, number in ((1.0, 0.0, 1), (0.9, 97.1, 1), (0.8, 96.9, 2)):
        clock[0] = at_seconds
        found = Incumbent(assignment=nowhere, objective_seconds=objective, partitioner="x")
        teller.report(cast("SolverProblem", SimpleNamespace(move=None)), found)
        assert len(heard) == number
