"""What large solves do not hold at the same time: all options, what first plans derived, equal arrays twice."""

import weakref

import numpy as np
import pytest

from planner import pipeline
from planner.domain.problem.problem import Problem
from planner.orchestration import explore as solving
from planner.orchestration.family_sets.family_set import FamilySet
from planner.orchestration.list_options import list_and_price
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import SolverProblem
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.5, relative_gap=0.0)


def derived(priced: SolverProblem) -> list[str]:
    return [name for name in vars(priced) if "." in name]


def test_sets_of_kinds_are_bounded_without_all_options(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=10.0 + 5 * i) for i in range(6)]
    problem = make_problem(*tables, cluster=make_cluster(1, 4, intra_host_latency_seconds=1e-6))
    listed: list[weakref.ref[SolverProblem]] = []
    shared: list[bool] = []
    bound_sets = solving.sets_of_kinds

    def listing(problem: Problem, cost_model: object) -> object:
        families, priced = list_and_price(problem, cost_model)  # type: ignore[misc, arg-type]
        listed.append(weakref.ref(priced))
        return families, priced

    def bounding(context: object, of_modes: object, modes: list[FamilySet], *rest: object) -> object:
        assert [one() for one in listed] == [None]
        assert [derived(mode.priced) for mode in modes] == [[]]
        found = bound_sets(context, of_modes, modes, *rest)  # type: ignore[arg-type]
        assert not any(derived(one.priced) for one in (*found.tried, *found.family_sets))
        shared.extend(
            leaf.kinds.priced.shape_seconds is modes[0].priced.shape_seconds
            for leaf in found.leaves
            if np.array_equal(leaf.kinds.priced.shape_seconds, modes[0].priced.shape_seconds)
        )
        return found

    monkeypatch.setattr(pipeline, "list_and_price", listing)
    monkeypatch.setattr(solving, "sets_of_kinds", bounding)
    found = pipeline.plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS, on_result=lambda _: None)
    assert found.plan is not None
    assert shared
    assert any(shared)
