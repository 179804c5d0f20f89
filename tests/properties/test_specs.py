"""From any small spec: the same problem when its normalised form is read again, and plans that hold."""

import json

from hypothesis import given, settings

from api.specs.parse import SolveRequest, parse_plan, parse_spec
from planner.output.exporters.generic import to_document
from planner.pipeline import plan
from planner.pricing.memory import ledger_rules
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.properties.specs import Json, specs

CAREFUL = settings(derandomize=True, deadline=None, database=None)


def parsed(spec: Json) -> SolveRequest:
    """The request of a spec."""
    return parse_spec(json.dumps(spec).encode())


@settings(CAREFUL, max_examples=150)
@given(specs())
def test_a_normalised_spec_is_the_same_problem(spec: Json) -> None:
    first = parsed(spec)
    again = parsed(first.spec)
    assert again.spec_digest == first.spec_digest
    assert again.spec == first.spec
    assert again.problem == first.problem
    assert (again.name, again.limits) == (first.name, first.limits)
    assert (again.cost_model.name, again.partitioner.name) == (first.cost_model.name, first.partitioner.name)


@settings(CAREFUL, max_examples=60)
@given(specs())
def test_every_plan_is_legal_and_no_better_than_its_bound(spec: Json) -> None:
    """Through the service's own reader, and back through its plan document."""
    request = parsed(spec)
    problem, rules = request.problem, ledger_rules(request.cost_model.ledger)
    result = plan(problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits)
    assert (result.plan is None) is (result.reason in (Reason.INFEASIBLE, Reason.NO_SOLUTION_FOUND))
    assert result.shortfalls or result.reason != Reason.INFEASIBLE, "a proof says what is short"
    if result.plan is None:
        return
    found = result.plan
    assert verify(problem, found.placement, rules=rules) == ()
    value = score(problem, found.placement, request.cost_model).objective_seconds
    assert value == found.evaluation.objective_seconds
    assert 0 <= found.lower_bound_seconds <= value
    document = to_document(
        found, name=request.name, spec_digest=request.spec_digest, hardware_profile=request.hardware_profile
    )
    assert parse_plan(json.dumps(document).encode()).placement == found.placement
