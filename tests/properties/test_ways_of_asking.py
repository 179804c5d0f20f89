"""One answer whichever way one asks, where hosts are slow: in full, streamed, evaluated, and from a plan that runs.

Limits that searches know nothing of, bytes per second of a tier and requests per second, end all of these alike.
"""

import json

import pytest

from api.execution.processes.solve import facts_of, planned
from api.services.plans.reports import evaluation_of
from api.specs.parse import parse_plan, parse_spec
from api.specs.request import SolveRequest
from planner.domain.plan.plan import Plan, PlanResult
from planner.errors import InvalidProblem
from planner.orchestration.answers.finish_plan import charged_seconds
from planner.orchestration.limits.own_time import broken_limits
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.long_plans import to_bytes
from tests.support.planning.random_specs import Spec
from tests.support.planning.slow_hosts import slow_host_spec, slower_with_previous
from tests.support.thorough import THOROUGH

_NUM_SPECS, _NUM_REPLANS = (200, 3) if THOROUGH else (5, 1)
_ROUNDING = 1 + 1e-9


def read(spec: Spec) -> SolveRequest | None:
    """Read a spec; ``None`` if its runtime refuses it."""
    try:
        return parse_spec(json.dumps(spec).encode())
    except InvalidProblem:
        return None


def document_of(request: SolveRequest, plan: Plan) -> Spec:
    """Return the document of a plan."""
    document: Spec = json.loads(to_bytes(plan, **facts_of(request, request.spec_digest)))
    return document


def asked_every_way(request: SolveRequest) -> Spec | None:
    """Ask in full and streamed, compare the answers, and check each plan; return the document of the plan, if any."""
    seen: list[PlanResult] = []
    in_full = planned(request, request.assumptions)
    streamed = planned(request, request.assumptions, seen.append)
    plans = [one.plan for one in (*seen, in_full, streamed) if one.plan is not None]
    for plan in plans:
        check(request, plan)
    assert (in_full.plan is None, in_full.reason, in_full.limit) == (
        streamed.plan is None,
        streamed.reason,
        streamed.limit,
    )
    if in_full.plan is None or streamed.plan is None:
        assert plans == [], "a plan was streamed, and none is the answer"
        return None
    assert charged_seconds(in_full.plan) <= min(map(charged_seconds, plans)) * _ROUNDING
    document = document_of(request, in_full.plan)
    assert document_of(request, streamed.plan)["plan_digest"] == document["plan_digest"]
    evaluated = evaluation_of(request, parse_plan(json.dumps(document).encode()))
    assert evaluated.violations == []
    assert evaluated.score is not None
    assert evaluated.score["objective_seconds"] == in_full.plan.evaluation.objective_seconds
    return document


def check(request: SolveRequest, plan: Plan) -> None:
    """Hold a plan to everything that the last answer is held to."""
    assert verify(request.problem, plan.placement) == ()
    assert list(broken_limits(plan.evaluation)) == []
    seconds = plan.evaluation.objective_seconds
    assert score(request.problem, plan.placement, request.cost_model).objective_seconds == seconds
    assert plan.lower_bound_seconds <= seconds * _ROUNDING
    if request.previous is not None and request.previous.max_moved_bytes is not None:
        assert plan.movement is not None
        assert plan.movement.moved_bytes <= request.previous.max_moved_bytes


def staying_seconds(request: SolveRequest) -> float:
    """Return the objective of staying where the previous plan is; infinite if that is no answer."""
    assert request.previous is not None
    placement = request.previous.placement
    if verify(request.problem, placement):
        return float("inf")
    evaluation = score(request.problem, placement, request.cost_model)
    return float("inf") if any(broken_limits(evaluation)) else evaluation.objective_seconds


@pytest.mark.parametrize("number", range(_NUM_SPECS))
def test_one_answer_whichever_way_one_asks(number: int) -> None:
    """Staying is an answer of every replan that may stay: none is dearer, streamed ones included."""
    spec = slow_host_spec(number)
    request = read(spec)
    document = None if request is None else asked_every_way(request)
    if document is None:
        return
    for turn in range(_NUM_REPLANS):
        again = read(slower_with_previous(spec, document, _NUM_REPLANS * number + turn))
        if again is None:
            continue
        staying = staying_seconds(again)
        replanned: list[PlanResult] = []
        answer = planned(again, again.assumptions, replanned.append)
        asked_every_way(again)
        assert staying == float("inf") or answer.plan is not None
        for one in (*replanned, answer):
            assert one.plan is None or charged_seconds(one.plan) <= staying * _ROUNDING


def test_a_plan_of_which_all_tables_may_stay_stays() -> None:
    """The search takes up a table of two pieces as if one of them moved, and the budget allows for less than that."""
    spec = slow_host_spec(42)
    request = read(spec)
    assert request is not None
    first = planned(request, request.assumptions).plan
    assert first is not None
    again = read(slower_with_previous(spec, document_of(request, first), 128))
    assert again is not None
    assert staying_seconds(again) < float("inf")
    assert planned(again, again.assumptions).plan is not None
