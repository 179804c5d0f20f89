"""From any small spec: the same problem when its normalised form is read again, and plans that hold."""

import json

import pytest
from hypothesis import given, settings

from api.specs.parse import parse_plan, parse_spec
from api.specs.request import SolveRequest
from cost_models.errors import CostModelError
from planner.errors import InvalidProblem, Issue
from planner.pipeline import plan
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.properties.specs import Json, broken_specs, specs
from tests.support.planning.long_plans import to_document
from tests.support.thorough import THOROUGH, thorough

CAREFUL = settings(derandomize=True, deadline=None, database=None)


def parsed(spec: Json) -> SolveRequest:
    """The request of a spec."""
    return parse_spec(json.dumps(spec).encode())


@thorough
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


def issues_of(spec: Json) -> tuple[Issue, ...]:
    """What is wrong with a spec, each at a place of its own; nothing if it is right, or has no price."""
    try:
        parsed(spec)
    except InvalidProblem as error:
        places = {issue.pointer for issue in error.issues}
        return error.issues if len(places) == len(error.issues) else pytest.fail(f"two issues at one place: {error}")
    except CostModelError:
        pass
    return ()


def leads_into(pointer: str, document: object) -> bool:
    """Whether a pointer names a value of a document, or a field that one of its objects may have."""
    parts = pointer.split("/")[1:]
    for number, part in enumerate(parts):
        if isinstance(document, list):
            if int(part) >= len(document):
                return False
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return isinstance(document, dict) and number == len(parts) - 1
    return True


@thorough
@settings(CAREFUL, max_examples=300)
@given(broken_specs())
def test_a_broken_spec_is_rejected_with_places_in_the_document_as_it_was_sent(spec: Json) -> None:
    for issue in issues_of(spec):
        assert issue.message
        assert leads_into(issue.pointer, spec), issue


@settings(CAREFUL, max_examples=60 if THOROUGH else 25)
@given(specs())
def test_every_plan_is_legal_and_no_better_than_its_bound(spec: Json) -> None:
    """Through the service's own reader, and back through its plan document."""
    request = parsed(spec)
    problem = request.problem
    result = plan(problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits)
    assert (result.plan is None) is (result.reason in (Reason.INFEASIBLE, Reason.NO_SOLUTION_FOUND))
    assert result.shortfalls or result.reason != Reason.INFEASIBLE, "a proof says what is short"
    if result.plan is None:
        return
    found = result.plan
    assert verify(problem, found.placement) == ()
    value = score(problem, found.placement, request.cost_model).objective_seconds
    assert value == found.evaluation.objective_seconds
    assert 0 <= found.lower_bound_seconds <= value
    document = to_document(
        found, name=request.name, spec_digest=request.spec_digest, hardware_profile=request.hardware_profile
    )
    assert parse_plan(json.dumps(document).encode()).placement == found.placement
