"""The example launcher, as a user runs it: model to spec, spec to plan, plan through a channel to torchrun."""

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.planning.long_plans import to_document

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from api.client import canonical_bytes
from api.specs.parse import parse_spec
from planner.pipeline import plan
from tests.support.paths import ROOT
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.torchrec

LAUNCHER = ROOT / "examples" / "launcher.py"
STEPS = 3


@pytest.fixture(scope="module")
def spec(environment: dict[str, str]) -> bytes:
    """The spec of the example's model on two ranks."""
    command = [sys.executable, str(LAUNCHER), "spec", "--ranks", "2"]
    return subprocess.run(command, env=environment, capture_output=True, check=True, timeout=PATIENCE_SECONDS).stdout


def planned(spec: bytes) -> bytes:
    """A plan of a spec, of the fastest partitioner."""
    request = parse_spec(json.dumps({**json.loads(spec), "solver": {"partitioner": "greedy"}}).encode())
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


@contextmanager
def service(plan_bytes: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A service that has a plan under one channel, and plans what is posted; yields its address and what was."""
    answers = {"/v1/channels/example/prod/plan": plan_bytes}
    posted: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(answers.get(self.path))

        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            content = planned(posted[-1])
            digest = json.loads(content)["plan_digest"]
            answers[f"/v1/plans/{digest}"] = content
            self.answer(canonical_bytes({"id": "1", "state": "succeeded", "result": {"plan_digest": digest}}))

        def answer(self, content: bytes | None) -> None:
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"{}")))
            self.end_headers()
            self.wfile.write(content or b"{}")

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", posted
    finally:
        server.shutdown()
        server.server_close()


def train(environment: dict[str, str], *source: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher on two ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(LAUNCHER)]
    return subprocess.run(
        [*command, "train", "--steps", str(STEPS), *source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def losses(done: subprocess.CompletedProcess[str]) -> list[float]:
    """The loss of every step, of a training that went well."""
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["step", str(step)] for step in range(STEPS)]
    return [float(line.split()[-1]) for line in lines]


@thorough
def test_it_trains_under_the_plan_of_a_channel(environment: dict[str, str], spec: bytes) -> None:
    with service(planned(spec)) as (address, posted):
        found = losses(train(environment, "--server", address, "--channel", "example/prod"))
    assert all(0 < loss < 1 for loss in found), found
    assert posted == []


@thorough
def test_where_the_plan_is_out_of_date_it_asks_for_a_new_one(environment: dict[str, str], spec: bytes) -> None:
    earlier = json.loads(spec)
    del earlier["model"]["tables"][0]
    with service(planned(json.dumps(earlier).encode())) as (address, posted):
        source = ("--server", address, "--channel", "example/prod")
        refused = train(environment, *source)
        assert posted == []
        done = train(environment, *source, "--replan")
    reason = 'every rank: table "user" of module "sparse" is not in the plan'
    assert refused.returncode != 0
    assert f"PlanRejected: {reason}" in refused.stderr
    assert all(0 < loss < 1 for loss in losses(done))
    assert f"asking for a new plan: {reason}" in done.stderr
    assert [json.loads(body) for body in posted] == [json.loads(spec)]
