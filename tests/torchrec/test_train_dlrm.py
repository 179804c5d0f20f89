"""The example with one changed line: DLRM under TorchRec's planner, under the service's, and without the service."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from tests.support.service.server import Server
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.torchrec

STEPS = 3


def trained(environment: dict[str, str], root: Path, *arguments: str) -> list[str]:
    """What two ranks print."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, str(root / "examples" / "train_dlrm.py"), "--steps", str(STEPS), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def losses(lines: list[str]) -> list[float]:
    assert [line.split()[:2] for line in lines] == [["step", str(step)] for step in range(STEPS)]
    return [float(line.split()[-1]) for line in lines]


@thorough
def test_the_service_plans_it(environment: dict[str, str], root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    try:
        first, *steps = trained(environment, root, "--server", str(server.client.base_url))
        solves = server.client.get("/v1/solves").json()["solves"]
    finally:
        server.stop()
    assert first == "planned by the service"
    assert [solve["state"] for solve in solves] == ["succeeded"]
    assert all(0.5 < loss < 1 for loss in losses(steps))


@thorough
def test_without_the_service_this_machine_plans_it(environment: dict[str, str], root: Path) -> None:
    first, *steps = trained(environment, root, "--server", "http://127.0.0.1:1")
    assert first == "planned by the command on this machine"
    assert all(0.5 < loss < 1 for loss in losses(steps))


@thorough
def test_torchrecs_planner_plans_it(environment: dict[str, str], root: Path) -> None:
    assert all(0.5 < loss < 1 for loss in losses(trained(environment, root, "--planner", "torchrec")))


@thorough
def test_its_phases_are_measured_and_put_next_to_the_plan(
    environment: dict[str, str], root: Path, tmp_path: Path
) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    try:
        _, *steps = trained(environment, root, "--server", str(server.client.base_url), "--measure")
        (solve,) = server.client.get("/v1/solves").json()["solves"]
        (preserved,) = server.client.get("/v1/measurements").json()["measurements"]
        document = server.client.get(preserved["measurements_url"]).json()
    finally:
        server.stop()
    assert losses(steps[:STEPS])
    reported = {line.split()[0].rstrip(":") for line in steps[STEPS:-1]}
    assert reported == {"input_comm", "forward_compute", "forward_comm", "backward_comm", "backward_compute"}
    assert steps[-1] == f"stored as {preserved['measurements_digest']}"
    assert (preserved["source"], preserved["plan_digest"]) == ("job", solve["result"]["plan_digest"])
    for one in preserved["comparison"]["phases"]:
        seen = [rank["seconds"][one["phase"]] for rank in document["ranks"]]
        assert (one["num_ranks"], one["observed_seconds"]) == (2, max(seen))
        assert one["predicted_seconds"] > 0
        assert any(line.startswith(f"{one['phase']:16}  measured") for line in steps)
    assert document["steps"] == STEPS - STEPS // 2


@thorough
def test_that_measuring_failed_does_not_fail_the_job(environment: dict[str, str], root: Path) -> None:
    _, *steps = trained(environment, root, "--server", "http://127.0.0.1:1", "--measure")
    assert losses(steps[:STEPS])
    assert steps[STEPS].startswith("not measured: rank 0 could not post the times: no answer from http://127.0.0.1:1")
