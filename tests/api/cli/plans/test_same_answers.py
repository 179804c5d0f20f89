"""The service and the command line give the same answer to the same spec, whatever it asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.run import Run
from tests.support.planning.random_specs import Spec, random_spec, with_previous
from tests.support.service.live import Live
from tests.support.thorough import THOROUGH

_NUM_SPECS = 200 if THOROUGH else 6


def answer_of_service(live: Live, spec: Spec) -> tuple[Any, ...]:
    """Digest and reason of what the service finds; the status if it refuses the spec."""
    answer = live.post("/v1/solves", spec, headers={"Prefer": "wait=60"})
    if answer.status_code != 200:
        return (answer.status_code,)
    solve = answer.json()
    assert solve["state"] == "succeeded", solve
    return solve["result"]["plan_digest"], solve["result"]["termination"]["reason"]


def answer_of_command(run: Run, folder: Path, spec: Spec) -> tuple[tuple[Any, ...], Spec | None]:
    """The same of ``shardplan plan``, and the plan."""
    spec_file, plan_file = folder / "spec.json", folder / "plan.json"
    spec_file.write_text(json.dumps(spec))
    plan_file.unlink(missing_ok=True)
    ran = run("plan", str(spec_file), "-o", str(plan_file))
    if ran.code == 1:
        return (422,), None
    if not plan_file.exists():
        return (None, "INFEASIBLE" if ran.code == 3 else "NO_SOLUTION_FOUND"), None
    plan = json.loads(plan_file.read_text())
    return (plan["plan_digest"], plan["termination"]["reason"]), plan


@pytest.mark.parametrize("number", range(_NUM_SPECS))
def test_equal_specs_give_equal_digests(number: int, live: Live, run: Run, tmp_path: Path) -> None:
    spec = random_spec(number)
    answer, plan = answer_of_command(run, tmp_path, spec)
    assert answer_of_service(live, spec) == answer
    if plan is None:
        return
    again = with_previous(spec, plan, number)
    answer, replan = answer_of_command(run, tmp_path, again)
    assert answer_of_service(live, again) == answer
    if replan is not None and (most := again["previous_plan"].get("max_moved_bytes")) is not None:
        assert replan["movement"]["moved_bytes"] <= most
