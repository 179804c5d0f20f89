"""The example with one changed line: DLRM under TorchRec's planner, under the service's, and without the service."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from tests.api.server import Server

pytestmark = [pytest.mark.torchrec, pytest.mark.slow]

STEPS = 3


def trained(environment: dict[str, str], root: Path, *arguments: str) -> list[str]:
    """What two ranks print."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, str(root / "examples" / "train_dlrm.py"), "--steps", str(STEPS), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def losses(lines: list[str]) -> list[float]:
    assert [line.split()[:2] for line in lines] == [["step", str(step)] for step in range(STEPS)]
    return [float(line.split()[-1]) for line in lines]


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


def test_without_the_service_this_machine_plans_it(environment: dict[str, str], root: Path) -> None:
    first, *steps = trained(environment, root, "--server", "http://127.0.0.1:1")
    assert first == "planned by the command on this machine"
    assert all(0.5 < loss < 1 for loss in losses(steps))


def test_torchrecs_planner_plans_it(environment: dict[str, str], root: Path) -> None:
    assert all(0.5 < loss < 1 for loss in losses(trained(environment, root, "--planner", "torchrec")))
