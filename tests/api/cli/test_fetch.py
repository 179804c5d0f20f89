"""``shardplan fetch`` and ``shardplan serve`` against each other, in processes of their own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api.client import PlannerClient
from examples import demo
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

CHANNEL = "ads/ranker/prod"
SHARDPLAN = [sys.executable, "-c", "from api.cli import main; main()"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with one channel that points at the plan of the small example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "DATA", tmp_path_factory.mktemp("service"))
        with demo.service() as address, PlannerClient(address) as client:
            spec = json.loads((demo.EXAMPLES / "dlrm_small.json").read_text())
            client.promote(CHANNEL, demo.plan_it(client, spec).digest)
            yield address


def fetch(path: Path, url: str, channel: str = CHANNEL) -> subprocess.CompletedProcess[str]:
    command = [*SHARDPLAN, "fetch", channel, "-o", str(path), "--server", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@thorough
def test_fetch_keeps_a_file_up_to_date(url: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    first, second = fetch(path, url), fetch(path, url)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert json.loads(first.stdout)["changed"] is True
    assert json.loads(second.stdout)["changed"] is False
    served = httpx.get(f"{url}/v1/channels/{CHANNEL}/plan")
    assert path.read_bytes() == served.content
    assert json.loads(first.stdout)["plan_digest"] == served.headers["X-Plan-Digest"]


def test_an_unknown_channel_is_bad_input(url: str, tmp_path: Path) -> None:
    answer = fetch(tmp_path / "plan.json", url, "no/such/channel")
    assert answer.returncode == 1
    assert "refused" in answer.stderr
    assert not (tmp_path / "plan.json").exists()


@thorough
def test_plans_of_the_command_line_and_of_the_service_are_the_same(url: str, tmp_path: Path) -> None:
    fetched, planned = tmp_path / "fetched.json", tmp_path / "planned.json"
    assert fetch(fetched, url).returncode == 0
    command = [*SHARDPLAN, "plan", str(demo.EXAMPLES / "dlrm_small.json"), "-o", str(planned), "--quiet"]
    assert subprocess.run(command, timeout=PATIENCE_SECONDS, check=False).returncode == 0
    one, other = json.loads(fetched.read_text()), json.loads(planned.read_text())
    assert one["plan_digest"] == other["plan_digest"]
    assert one["objective"] == other["objective"]
