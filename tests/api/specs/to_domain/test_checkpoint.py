"""Checkpoints over the edge: read strictly, assumed openly, told in plans and evaluations."""

import json
from typing import Any

import pytest

from api.services.plans.reports import evaluation_of
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_spec
from cost_models.vocabulary import Evidence
from planner.domain.problem.checkpoint import Checkpoint
from planner.pipeline import plan
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.long_plans import to_document
from tests.support.service.specs import raw, tiny


def with_checkpoint(**fields: Any) -> dict[str, object]:
    return tiny(checkpoint={"interval_steps": 1000, **fields})


def test_defaults() -> None:
    request = parse_spec(raw(with_checkpoint()))
    assert request.problem.checkpoint == Checkpoint(interval_steps=1000)
    assumed = {item.subject: item for item in request.assumptions if item.subject.startswith("checkpoint.")}
    assert {name: item.value for name, item in assumed.items()} == {
        "checkpoint.policy": "full",
        "checkpoint.full_every": "1",
        "checkpoint.bits": "weights are stored as they are",
        "checkpoint.intervals_between_failures": "20",
        "checkpoint.balance": "false",
        "checkpoint.upload_bytes_per_second": "1000000000 bytes_per_second",
        "checkpoint.download_bytes_per_second": "2000000000 bytes_per_second",
    }
    assert assumed["checkpoint.policy"].evidence == "default"
    assert assumed["checkpoint.upload_bytes_per_second"].evidence == "estimated"


def test_what_is_given_is_taken_and_not_assumed() -> None:
    given = {
        "policy": "intermittent",
        "full_every": 5,
        "bits": 8,
        "upload_bytes_per_second": 3e9,
        "download_bytes_per_second": 4e9,
        "intervals_between_failures": 7.5,
        "balance": True,
    }
    request = parse_spec(raw(with_checkpoint(**given)))
    want = Checkpoint(interval_steps=1000, rate_evidence=Evidence.GIVEN, **given)  # type: ignore[arg-type]
    assert request.problem.checkpoint == want
    assert not [item for item in request.assumptions if item.subject.startswith("checkpoint")]
    one_rate = parse_spec(raw(with_checkpoint(upload_bytes_per_second=3e9))).problem.checkpoint
    assert one_rate is not None
    assert one_rate.rate_evidence is Evidence.ESTIMATED
    increments = parse_spec(raw(with_checkpoint(policy="consecutive"))).problem.checkpoint
    assert increments is not None
    assert increments.full_every == 12
    explicit = [with_checkpoint(policy="consecutive", **more) for more in ({}, {"full_every": 12})]
    assert len({parse_spec(raw(spec)).spec_digest for spec in explicit}) == 1


@pytest.mark.parametrize(
    ("checkpoint", "pointer"),
    [
        ({}, "/checkpoint/interval_steps"),
        ({"interval_steps": 0}, "/checkpoint/interval_steps"),
        ({"interval_steps": 10, "policy": "often"}, "/checkpoint/policy"),
        ({"interval_steps": 10, "bits": 7}, "/checkpoint/bits"),
        ({"interval_steps": 10, "upload_bytes_per_second": 0}, "/checkpoint/upload_bytes_per_second"),
        ({"interval_steps": 10, "every": 3}, "/checkpoint/every"),
        ({"interval_steps": 10, "full_every": 2}, "/checkpoint"),
        ({"interval_steps": 10, "policy": "full", "full_every": 2}, "/checkpoint"),
    ],
    ids=str,
)
def test_bad_input_is_refused_with_its_place(checkpoint: dict[str, Any], pointer: str) -> None:
    with pytest.raises(RejectedDocument) as caught:
        parse_spec(raw(tiny(checkpoint=checkpoint)))
    assert [issue.pointer for issue in caught.value.issues] == [pointer]


def test_a_rate_that_snapshots_need_is_asked_for() -> None:
    numbers = {"hbm_bytes": 8e10, "hbm_bytes_per_second": 2e12, "intra_host_bytes_per_second": 3e11}
    hardware = {"profile": "custom", "ranks_per_host": 2, "overrides": numbers}
    parse_spec(raw(tiny(hardware=hardware)))
    with pytest.raises(RejectedDocument) as caught:
        parse_spec(raw({**with_checkpoint(), "hardware": hardware}))
    assert [issue.pointer for issue in caught.value.issues] == ["/hardware/overrides/host_link_bytes_per_second"]


def test_another_checkpoint_is_another_problem_and_none_is_the_same_as_before() -> None:
    digests = [
        parse_spec(raw(spec)).spec_digest
        for spec in (tiny(), tiny(checkpoint=None), with_checkpoint(), with_checkpoint(balance=True))
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert "checkpoint" not in parse_spec(raw(tiny())).spec


@pytest.mark.parametrize("fields", [{}, {"policy": "consecutive"}, {"upload_bytes_per_second": 3e9}], ids=str)
def test_a_stored_spec_means_the_same(fields: dict[str, Any]) -> None:
    first = parse_spec(raw(with_checkpoint(**fields)))
    again = parse_spec(raw(first.spec))
    assert again.problem == first.problem
    assert again.spec_digest == first.spec_digest


def document_of(spec: dict[str, object]) -> dict[str, Any]:
    request = parse_spec(raw(spec))
    found = plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=Greedy(),
        limits=request.limits,
        assumptions=request.assumptions,
    ).plan
    assert found is not None
    return to_document(found, name="tiny", spec_digest=request.spec_digest, hardware_profile="dgx-h100-80g")


def test_plans_and_evaluations_report_the_same() -> None:
    spec = with_checkpoint(policy="one_shot", upload_bytes_per_second=1e3)
    document = document_of(spec)
    reported = document["checkpoint"]
    # 1,000 x (8 x 4 + 4) and 500 x (16 x 4 + 4) bytes on one host.
    assert reported["full"]["bytes"] == sum(one["full_bytes"] for one in reported["by_rank"]) == 36_000 + 34_000
    assert reported["by_host"][0]["full_bytes"] == 70_000
    assert reported["full"]["upload_seconds"] == pytest.approx(70.0)
    assert reported["full_every"] == 12
    assert not reported["fits"]
    assert "host 0 uploads a full checkpoint for 70 s" in reported["warning"]
    evidence = document["provenance"]["evidence"]
    assert "hardware.host_link_return_bytes_per_second" in evidence
    evaluation = evaluation_of(*parse_evaluation(raw({"spec": spec, "plan": document})))
    assert evaluation.valid
    assert evaluation.score is not None
    assert evaluation.score["checkpoint"] is not None
    assert evaluation.score["checkpoint"] == reported
    assert [(warning.code, warning.pointer) for warning in evaluation.warnings] == [
        ("checkpoint-late", "/plan/checkpoint")
    ]


def test_without_checkpoints_nothing_is_reported() -> None:
    document = document_of(tiny())
    assert document["checkpoint"] is None
    assert "checkpoint" not in json.dumps({**document, "checkpoint": None}).replace('"checkpoint": null', "")
    evaluation = evaluation_of(*parse_evaluation(raw({"spec": tiny(), "plan": document})))
    assert evaluation.score is not None
    assert evaluation.score["checkpoint"] is None


def test_the_phase_is_there_where_the_plan_is_balanced() -> None:
    phases = {phase["name"]: phase for phase in document_of(with_checkpoint(balance=True))["phases"]}
    assert phases["checkpoint"]["counted"]
    assert phases["checkpoint"]["seconds"] > 0
    assert "checkpoint" not in {phase["name"] for phase in document_of(with_checkpoint())["phases"]}
