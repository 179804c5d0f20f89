"""``plan --server`` and ``solves``: submitting, coming back, cancelling, and answers without a plan."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.remote import follow
from api.client import PlannerClient
from tests.api.cli.conftest import reach
from tests.support.cli.run import Run
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.specs import tiny
from tests.support.service.stand_ins import leave_in

SERVER = ("--server", "http://planner")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(tiny()))
    return path


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A service whose solves find a plan and go on."""
    leave_in(tmp_path)
    with Live.of(tmp_path / "data", plan=planners.plan_then_hang, solver_grace_seconds=3600) as live:
        reach(live, monkeypatch)
        yield live


def test_a_service_plans_what_this_machine_plans(run: Run, spec: Path, service: Live) -> None:
    here = run("plan", spec, "--seed", "3", "--quiet").document
    answer = run("plan", spec, "--seed", "3", *SERVER)
    assert answer.code == 0, answer.err
    assert answer.document["plan_digest"] == here["plan_digest"]
    assert answer.document["tables"] == here["tables"]
    (listed,) = service.get("/v1/solves").json()["solves"]
    assert f"solve {listed['id']} at http://planner" in answer.err
    assert "Plan of tiny" in answer.err
    assert run("plan", spec, "--quiet", *SERVER, "-o", spec.with_name("plan.json")).err == ""


def test_solves_are_listed_and_shown(run: Run, spec: Path, service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = run("plan", spec, *SERVER).document
    (listed,) = run("solves", *SERVER).document["solves"]
    assert listed["result"]["plan_digest"] == plan["plan_digest"]
    assert run("solves", "list", "--state", "failed", *SERVER).document == {"solves": []}
    output = spec.with_name("brought.json")
    assert run("solves", "show", listed["id"], "-o", output, *SERVER).code == 0
    assert json.loads(output.read_bytes())["plan_digest"] == plan["plan_digest"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    table = run("solves", *SERVER).err
    assert f"{listed['id']}  succeeded" in table
    shown = run("solves", "show", listed["id"], *SERVER).err
    assert plan["plan_digest"] in shown
    assert [line for line in (table + shown).splitlines() if len(line) > 80] == []


def test_the_spec_of_a_solve_is_planned_with_changes(run: Run, spec: Path, service: Live) -> None:
    run("plan", spec, *SERVER, "-q", "-o", spec.with_name("plan.json"))
    (first,) = run("solves", *SERVER).document["solves"]
    patch, output = spec.with_name("patch.json"), spec.with_name("changed.json")
    patch.write_text(json.dumps({"hardware": {"ranks_per_host": 4}, "name": "changed"}))
    changed = ("solves", "from-patch", first["id"])
    assert run(*changed, patch, "--set", "solver.seed=4", "-o", output, *SERVER).code == 0
    plan = json.loads(output.read_bytes())
    assert (plan["world_size"], plan["name"], plan["provenance"]["seed"]) == (4, "changed", 4)
    assert run(*changed, "--set", "hardware.ranks_per_host=4", *SERVER).document["state"] in ("queued", "succeeded")
    nothing = run(*changed, *SERVER)
    assert nothing.code == 1
    assert "give PATCH.json, --set FIELD=VALUE, or both" in nothing.err
    wrong = run(*changed, "--set", "hardware.num_hosts=0", *SERVER)
    assert wrong.code == 1
    assert "/hardware/num_hosts" in wrong.err


def test_an_infeasible_spec_says_what_would_give_a_plan(run: Run, spec: Path, service: Live) -> None:
    changes = ("--set", "hardware.overrides.hbm_bytes=40000", "--set", "hardware.overrides.ddr_bytes=0")
    answer = run("plan", spec, *changes, *SERVER)
    assert answer.code == 3, answer.err
    assert answer.document["result"]["termination"]["reason"] == "INFEASIBLE"
    words = " ".join(answer.err.split())
    for shortfall in answer.document["result"]["shortfalls"]:
        assert " ".join(shortfall["message"].split()) in words


def test_what_the_service_refuses_is_bad_input(run: Run, spec: Path, service: Live) -> None:
    answer = run("plan", spec, "--set", "model.batch_size_per_rank=0", *SERVER)
    assert answer.code == 1
    assert "/model/batch_size_per_rank" in answer.err
    assert run("solves", "show", "none", *SERVER).code == 1
    spec.write_text("{")
    assert "whole document" in run("plan", spec, *SERVER).err
    for option in ("--statistics", "--cost-model-file"):
        refused = run("plan", spec, option, spec, *SERVER)
        assert refused.code == 1


def interrupts(monkeypatch: pytest.MonkeyPatch, *, twice: bool) -> None:
    """Interrupt the first look at a solve that has a plan, and the pause after the interrupt."""
    get_solve, left = PlannerClient.get_solve, [None]

    def looked(client: PlannerClient, solve_id: str, *, wait_seconds: float = 0.0) -> dict[str, Any]:
        document = get_solve(client, solve_id, wait_seconds=wait_seconds)
        if left and document["progress"]:
            left.pop()
            raise KeyboardInterrupt
        return document

    def sleep(seconds: float) -> None:
        if twice and not left and seconds == follow.SECOND_INTERRUPT_SECONDS:
            raise KeyboardInterrupt

    monkeypatch.setattr(PlannerClient, "get_solve", looked)
    monkeypatch.setattr(follow, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))


def test_an_interrupt_leaves_the_solve_and_says_how_to_come_back(
    run: Run, spec: Path, endless: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts(monkeypatch, twice=False)
    answer = run("plan", spec, *SERVER)
    (solve,) = endless.get("/v1/solves").json()["solves"]
    assert (answer.code, answer.out, solve["state"]) == (130, "", "running")
    assert "  export SHARDPLAN_SERVER=http://planner\n" in answer.err
    assert f"  shardplan solves show {solve['id']} -o PLAN.json\n" in answer.err
    cancelled = run("solves", "cancel", solve["id"], *SERVER).document
    assert cancelled["id"] == solve["id"]


def test_a_second_interrupt_cancels_and_brings_the_best_plan(
    run: Run, spec: Path, endless: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts(monkeypatch, twice=True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    answer = run("plan", spec, *SERVER)
    (solve,) = endless.get("/v1/solves").json()["solves"]
    assert solve["state"] in ("succeeded", "cancelled")
    assert answer.document["plan_digest"] == solve["result"]["plan_digest"]
    again = run("solves", "retry", solve["id"], *SERVER)
    assert (again.code == 0) == (solve["state"] == "cancelled")
