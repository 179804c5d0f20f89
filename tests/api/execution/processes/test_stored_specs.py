"""A solver process rebuilds a stored spec, which was checked when it was accepted, and checks nothing again."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from api.execution.processes.solve import SolveAnswer, SolveJob, run_solve
from api.specs import parse
from api.specs.parse import parse_spec, parse_stored_spec
from planner.domain.formats.canonical_json import canonical_bytes
from planner.output.exporters.generic import to_document
from planner.pipeline import plan
from tests.support.service.broken_specs import SOUND
from tests.support.service.specs import raw


def accepted(**changes: object) -> tuple[bytes, str]:
    """The stored bytes of a spec, and its digest."""
    request = parse_spec(raw({**SOUND, **changes}))
    return canonical_bytes(request.spec), request.spec_digest


def solved(stored: bytes, folder: Path, spec_digest: str = "") -> SolveAnswer:
    job = SolveJob(
        spec_bytes=stored, spec_digest=spec_digest, assumptions=(), incumbent_file=folder / "a.plan", plan=plan
    )
    return run_solve(job)


def test_a_stored_spec_means_what_it_meant_when_it_was_accepted() -> None:
    request, inputs = parse_spec(raw(SOUND)), parse_stored_spec(accepted()[0])
    assert inputs.problem == request.problem
    for name in ("name", "partitioner_name", "limits", "previous", "hardware_profile"):
        assert getattr(inputs, name) == getattr(request, name), name
    assert (inputs.cost_model.name, inputs.cost_model.version) == (request.cost_model.name, request.cost_model.version)


def test_a_solver_process_does_not_check_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Counted work ends both searches: the clock is far away, however busy the machine.
    stored, spec_digest = accepted(solver={"partitioner": "greedy", "time_limit_seconds": 300, "work_limit_seconds": 1})
    request = parse_stored_spec(stored)
    found = plan(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    ).plan
    assert found is not None

    def unexpected(*_: object) -> None:
        raise AssertionError("a stored spec was checked when it was accepted")

    for stage in ("check", "check_domain", "warn", "request_of"):
        monkeypatch.setattr(parse, stage, unexpected)
    answer = solved(stored, tmp_path, spec_digest)
    assert answer.best is not None
    document = to_document(found, name="sound", spec_digest=spec_digest, hardware_profile="custom")
    assert without_seconds(json.loads(answer.best.document)) == without_seconds(document)


def without_seconds(document: Any) -> Any:
    """A plan without what depends on how long its search took."""
    content = copy.deepcopy(document)
    for of_the_clock in ("solver_seconds", "found_seconds", "late_gain_seconds"):
        del content["provenance"][of_the_clock]
    return content


@pytest.mark.parametrize(
    ("changes", "stated"),
    [
        ({"wrong": 1}, "/wrong: unknown field"),
        ({"solver": {"partitioner": "lost"}}, "/solver/partitioner: no partitioner of this name"),
        ({"hardware": {"profile": "lost"}}, "/hardware/profile: no hardware profile of this name"),
        ({"cost_model": "lost"}, "/cost_model: no cost model of this name"),
        ({"model": {**SOUND["model"], "tables": SOUND["model"]["tables"][:7]}}, "/constraints/same_rank/0/1: no table"),
        ({"objective": "request_latency"}, "/serving: the objective request_latency needs the samples of a request"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_a_spec_that_another_release_accepted_ends_its_solve(
    changes: dict[str, object], stated: str, tmp_path: Path
) -> None:
    """Fields and names that are gone, and rules that are new: the answer is that of a submission."""
    document = {**copy.deepcopy(json.loads(accepted()[0])), **changes}
    if "model" in changes:
        document["constraints"]["apart"] = []
    answer = solved(canonical_bytes(document), tmp_path)
    assert answer.error is not None
    assert answer.error["code"] == "invalid-problem"
    assert answer.error["message"].startswith(stated)
