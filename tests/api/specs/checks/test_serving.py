"""Specs that serve requests: what belongs together, and what is told with a pointer."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.services.plans.reports import evaluation_of
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_plan, parse_spec
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.long_plans import to_document
from tests.support.service.specs import raw, tiny


def served(**changes: object) -> dict[str, Any]:
    """The tiny spec on two cards of a host, asked by requests of 32 samples; ``None`` leaves a field out."""
    spec: dict[str, Any] = tiny(
        hardware__profile="inference-6card-m2",
        objective="request_latency",
        cost_model="serving",
        serving={"samples_per_request": 32},
        model__pipeline="none",
        model__tables__0__optimizer="none",
        model__tables__1__optimizer="none",
    )
    del spec["model"]["batch_size_per_rank"]
    for path, value in changes.items():
        *parents, last = path.split("__")
        place: Any = spec
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return spec


def pointers(spec: object) -> set[str]:
    with pytest.raises(RejectedDocument) as raised:
        parse_spec(raw(spec))
    assert all(issue.hint for issue in raised.value.issues)
    return {issue.pointer for issue in raised.value.issues}


def test_a_spec_that_serves_becomes_a_problem() -> None:
    request = parse_spec(raw(served(serving__requests_per_second=100.0, serving__utilization_limit=0.5)))
    problem = request.problem
    assert problem.serving is not None
    assert (problem.serving.samples_per_request, problem.serving.requests_per_second) == (32, 100.0)
    assert problem.serving.utilization_limit == 0.5
    assert problem.samples_per_rank == 16
    assert request.cost_model.name == "serving"
    # dense weights once and one batch's ids: nothing is trained
    assert (problem.reservation.dense_multiplier, problem.reservation.input_copies) == (1.0, 1)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"serving": None}, "/serving"),
        ({"cost_model": None}, "/cost_model"),
        ({"cost_model": "torchrec"}, "/cost_model"),
        ({"model__batch_size_per_rank": 16}, "/model/batch_size_per_rank"),
        ({"model__pipeline": None}, "/model/pipeline"),
        ({"model__dense__forward_seconds": 0.1}, "/model/dense/forward_seconds"),
        ({"model__dense__backward_seconds": 0.1}, "/model/dense/backward_seconds"),
        ({"model__backward_comm_dtype": "fp16"}, "/model/backward_comm_dtype"),
        ({"model__tables__1__optimizer": None}, "/model/tables/1/optimizer"),
        ({"model__tables__0__optimizer": "sgd"}, "/model/tables/0/optimizer"),
        ({"checkpoint": {"interval_steps": 10}}, "/checkpoint"),
        ({"hardware__num_hosts": 2}, "/hardware/num_hosts"),
        ({"hardware__overrides__hbm_bytes": 0.0}, "/hardware"),
        ({"serving__samples_per_request": 0}, "/serving/samples_per_request"),
        ({"serving__requests_per_second": 0.0}, "/serving/requests_per_second"),
        ({"serving__utilization_limit": 1.5}, "/serving/utilization_limit"),
        ({"serving__p99_seconds": 0.0}, "/serving/p99_seconds"),
        ({"serving__p99_seconds": 0.1}, "/serving/p99_seconds"),
        ({"hardware__profile": "dgx-h100-80g"}, "/hardware/overrides/host_link_message_seconds"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_contradicts_requests_is_pointed_at(changes: dict[str, object], pointer: str) -> None:
    assert pointers(served(**changes)) == {pointer}


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"serving": {"samples_per_request": 32}}, "/serving"),
        ({"cost_model": "serving"}, "/cost_model"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_contradicts_training_is_pointed_at(changes: dict[str, object], pointer: str) -> None:
    assert pointer in pointers(tiny(**changes))


def test_more_cards_than_a_host_has_are_not_sent_to_other_hosts() -> None:
    with pytest.raises(RejectedDocument) as raised:
        parse_spec(raw(served(hardware__ranks_per_host=7)))
    (issue,) = raised.value.issues
    assert issue.message == "7 ranks per host, and the profile has 6"
    assert issue.hint == "use at most 6, or the profile custom"


def test_a_training_step_needs_its_batch() -> None:
    spec: dict[str, Any] = tiny()
    del spec["model"]["batch_size_per_rank"]
    with pytest.raises(RejectedDocument) as raised:
        parse_spec(raw(spec))
    assert [(issue.code, issue.pointer) for issue in raised.value.issues] == [
        ("missing-field", "/model/batch_size_per_rank")
    ]


def test_requests_are_part_of_the_digest_and_training_specs_keep_theirs() -> None:
    digest = parse_spec(raw(served())).spec_digest
    assert parse_spec(raw(served(serving__samples_per_request=33))).spec_digest != digest
    assert parse_spec(raw(served(serving__utilization_limit=0.8))).spec_digest == digest  # the default
    assert "serving" not in parse_spec(raw(tiny())).spec


def test_defaults_are_reported() -> None:
    reported = {item.subject: item.value for item in parse_spec(raw(served())).assumptions}
    assert reported["serving.utilization_limit"] == "0.8"
    assert "serving" not in reported
    assert "model.batch_size_per_rank" not in reported
    assert "serving.requests_per_second" not in reported
    assert "serving.p99_seconds" not in reported


def planned(spec: object) -> tuple[Any, dict[str, Any]]:
    request = parse_spec(raw(spec))
    limits = SolveLimits(time_limit_seconds=5.0)
    found = plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    return request, to_document(found, name="x", spec_digest=request.spec_digest, hardware_profile="x")


def test_a_plan_comes_back_with_its_score() -> None:
    request, document = planned(served())
    answer = evaluation_of(request, parse_plan(json.dumps(document).encode()))
    assert answer.valid
    assert answer.score is not None
    assert answer.score["objective"] == "request_latency"
    assert answer.score["step_time_seconds"] is None
    assert answer.score["serving"] is not None
    assert answer.score["serving"]["busy_seconds"] == pytest.approx(answer.score["objective_seconds"])


def test_a_plan_that_does_not_sustain_the_rate_breaks_a_rule() -> None:
    _, document = planned(served())
    asked = parse_spec(raw(served(serving__requests_per_second=1e8)))
    answer = evaluation_of(asked, parse_plan(json.dumps(document).encode()))
    assert [issue.code for issue in answer.violations] == ["request-rate"]


def test_a_plan_that_answers_too_late_breaks_a_rule() -> None:
    request, document = planned(served(serving__requests_per_second=100.0))
    assert document["serving"]["p99_limit_seconds"] is None
    seconds = document["serving"]["p99_seconds"]
    assert seconds >= document["serving"]["p50_seconds"] >= document["serving"]["busy_seconds"]
    for limit, codes in ((seconds * 1.01, []), (seconds * 0.99, ["request-p99"])):
        asked = parse_spec(raw(served(serving__requests_per_second=100.0, serving__p99_seconds=limit)))
        answer = evaluation_of(asked, parse_plan(json.dumps(document).encode()))
        assert [issue.code for issue in answer.violations] == codes
        assert asked.spec_digest != request.spec_digest


def test_the_example_is_planned(examples: Path) -> None:
    request = parse_spec((examples / "serving_6card.json").read_bytes())
    limits = SolveLimits(time_limit_seconds=5.0)
    found = plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    load = found.evaluation.serving
    assert load is not None
    assert load.sustained_requests_per_second is not None
    assert load.sustained_requests_per_second > 300
