"""What holds of every replan, whatever the spec asks for: its budget, the bound of the problem, the width of pieces."""

import json

import pytest

from api.execution.processes.solve import facts_of, planned
from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from planner.domain.plan.plan import Plan, PlanResult
from planner.errors import InvalidProblem
from planner.options.enumerate import enumerate_families
from planner.options.schemes.geometry import least_piece_columns
from planner.orchestration.limits.shortfalls import memory_shortfalls
from planner.pricing.price_options import price
from tests.support.planning.long_plans import to_bytes
from tests.support.planning.random_specs import Spec, random_spec, with_previous
from tests.support.thorough import THOROUGH

_NUM_SPECS = 1000 if THOROUGH else 8
_ROUNDING = 1 + 1e-9


def read(spec: Spec) -> SolveRequest | None:
    """Read a spec; ``None`` if its runtime refuses it."""
    try:
        return parse_spec(json.dumps(spec).encode())
    except InvalidProblem:
        return None


def solved(request: SolveRequest, seen: list[PlanResult]) -> PlanResult:
    """Plan a request; what is streamed is appended to ``seen``."""
    return planned(request, request.assumptions, seen.append)


def fit_nowhere(request: SolveRequest) -> tuple[int, ...]:
    """Return the tables of which no piece of the least width fits any rank: they are cut as narrow as needed."""
    problem = request.problem
    short = memory_shortfalls(problem, price(problem, enumerate_families(problem), request.cost_model))
    return () if short is None else short.tables


@pytest.mark.parametrize("number", range(_NUM_SPECS))
def test_replans_keep_budgets_bounds_and_widths(number: int) -> None:
    """Incumbents, too: whatever is streamed may be the last that is heard of a solve."""
    spec = random_spec(1000 + number)
    spec["solver"]["partitioner"] = ("portfolio", "cp_sat", "local_search", "greedy")[number % 4]
    request = read(spec)
    first = None if request is None else solved(request, []).plan
    if request is None or first is None:
        pytest.skip("the runtime refuses the spec, or it has no plan")
    document = json.loads(to_bytes(first, **facts_of(request, request.spec_digest)))
    again = with_previous(spec, document, number)
    free_request, request = read({**again, "previous_plan": None}), read(again)
    assert free_request is not None
    assert request is not None
    free, streamed = solved(free_request, []), []
    result = solved(request, streamed)
    plans: list[Plan] = [one.plan for one in (*streamed, result) if one.plan is not None]
    most = again["previous_plan"].get("max_moved_bytes", float("inf"))
    narrow = fit_nowhere(request)
    least_columns = [
        0 if index in narrow else min(least_piece_columns(table), int(placed.shards.num_columns.min()))
        for index, (table, placed) in enumerate(zip(request.problem.tables, first.placement.tables, strict=True))
    ]
    for plan in plans:
        assert plan.movement is not None
        assert plan.movement.moved_bytes <= most
        assert plan.evaluation.objective_seconds * _ROUNDING >= max(free.lower_bound_seconds, plan.lower_bound_seconds)
        assert [
            placed.name
            for placed, least in zip(plan.placement.tables, least_columns, strict=True)
            if placed.shards.num_columns.min() < least
        ] == []
    if free.plan is not None:
        assert free.plan.evaluation.objective_seconds * _ROUNDING >= result.lower_bound_seconds
