"""The example launcher, as a user runs it: model to spec, spec to plan, plan through a channel to torchrun."""

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from api.client import canonical_bytes
from api.convert import parse_spec
from planner.exporters.generic import to_document
from planner.pipeline import plan

pytestmark = [pytest.mark.torchrec, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
LAUNCHER = ROOT / "examples" / "launcher.py"
STEPS = 3


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where ``shardplan_client`` is the client of this tree."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "shardplan_client").symlink_to(ROOT / "api" / "client")
    return os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


@pytest.fixture(scope="module")
def plan_bytes(environment: dict[str, str]) -> bytes:
    """The plan of the example's model on two ranks."""
    command = [sys.executable, str(LAUNCHER), "spec", "--ranks", "2"]
    spec = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120).stdout
    request = parse_spec(spec)
    result = plan(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    assert result.plan is not None
    return canonical_bytes(
        to_document(
            result.plan,
            name=request.name,
            spec_digest=request.spec_digest,
            hardware_profile=request.hardware_profile,
        )
    )


@pytest.fixture
def server(plan_bytes: bytes) -> Iterator[str]:
    """A service that has the plan under one channel, and nothing else."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = plan_bytes if self.path == "/v1/channels/example/prod/plan" else b"{}"
            self.send_response(200 if content is plan_bytes else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{service.server_port}"
    service.shutdown()
    service.server_close()


def train(environment: dict[str, str], *source: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher on two ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(LAUNCHER)]
    return subprocess.run(
        [*command, "train", "--steps", str(STEPS), *source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_it_trains_under_the_plan_of_a_channel(environment: dict[str, str], server: str) -> None:
    done = train(environment, "--server", server, "--channel", "example/prod")
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["step", str(step)] for step in range(STEPS)]
    assert all(0 < float(line.split()[-1]) < 1 for line in lines), lines
