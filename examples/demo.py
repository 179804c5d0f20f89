"""What `make demo` runs: one service, two plans, and a launcher that fetches them.

Starts the service on a free port with its data in ``.demo/``; submits MLPerf DLRM-DCNv2 on 8
and on 2 x 8 ranks as a launcher would; prints each plan; promotes it to a channel; fetches it
through the channel twice (the second time nothing is sent) and checks that every byte and the
digest are those of the plan; stops the service. Exits with 1 at the first thing that is not so.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from api.client import FetchedPlan, PlannerClient, check_plan, fetch
from planner.output.explain.text.layout import short_digest
from planner.output.explain.text.plan import explain_plan

EXAMPLES = Path(__file__).parent
DATA = EXAMPLES.parent / ".demo"
#: Spec, and the channel that its launcher reads.
DEMOS = (("dlrm_dcnv2_8.json", "demo/dlrm-dcnv2/8-ranks"), ("dlrm_dcnv2_2x8.json", "demo/dlrm-dcnv2/2x8-ranks"))
START_SECONDS = 300.0  # a busy machine imports for long; a service that ends is noticed at once
STOP_SECONDS = 10.0


class Mismatch(Exception):
    """Something is not as the contract says."""


def expect(holds: bool, otherwise: str) -> None:
    """Raise unless a promise of the service holds."""
    if not holds:
        raise Mismatch(otherwise)


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def service() -> Iterator[str]:
    """Run ``shardplan serve`` with an empty data folder; yields its address once it is ready."""
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", "from api.cli import main; main()", "serve", "--port", str(port)]
    with (DATA / "service.log").open("wb") as log:
        process = subprocess.Popen([*command, "--data-dir", str(DATA / "data")], stdout=log, stderr=log)
        try:
            wait_until_ready(url, process)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise Mismatch(f"the service did not stop within {STOP_SECONDS:g} s") from None


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for the service to say that it takes work."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz", timeout=1.0).is_success:
                return
        time.sleep(0.05)
    log = (DATA / "service.log").read_text(errors="replace")
    raise Mismatch(f"the service did not start; its log says:\n{log}")


def plan_it(client: PlannerClient, spec: Mapping[str, object]) -> FetchedPlan:
    """Submit a spec, wait for the solve, fetch its plan."""
    solve = client.solve(spec, wait_seconds=120.0)
    expect(solve["state"] == "succeeded", f"the solve ended as {solve['state']}: {solve.get('error')}")
    return client.plan_of(solve)


def publish_and_fetch(client: PlannerClient, channel: str, plan: FetchedPlan) -> None:
    """Promote a plan to a channel and read it back the way a launcher does."""
    client.promote(channel, plan.digest)
    path = DATA / f"{channel.rpartition('/')[2]}.plan.json"
    first = fetch(client, channel, path)
    expect(first.changed, "the first fetch wrote nothing")
    expect(path.read_bytes() == plan.content, "the bytes fetched through the channel are not the plan's bytes")
    expect(first.digest == plan.digest == plan.document["plan_digest"], "the digests differ")
    second = fetch(client, channel, path)
    expect(not second.changed, "the second fetch should have been answered with 304")
    expect(client.fetch_channel(channel, etag=plan_etag(client, channel)) is None, "expected 304 for a known ETag")
    document = check_plan(
        json.loads(path.read_bytes()),
        world_size=plan.document["world_size"],
        ranks_per_host=plan.document["ranks_per_host"],
    )
    print(f"  channel  {channel}")
    print(f"  fetched  {len(plan.content):,} bytes, identical; then 304 Not Modified")
    print(f"  digest   {short_digest(document['plan_digest'])}, recomputed by the launcher: equal")


def plan_etag(client: PlannerClient, channel: str) -> str:
    """The ETag that the channel's plan has now."""
    plan = client.fetch_channel(channel)
    if plan is None or plan.etag is None:
        raise Mismatch("the service sent a plan without an ETag")
    return plan.etag


def main() -> int:
    """Run the demo; returns the exit code."""
    started = time.monotonic()
    try:
        with service() as url, PlannerClient(url) as client:
            print(f"shardplan listens on {url}, its console is under /docs\n")
            for spec_name, channel in DEMOS:
                spec = json.loads((EXAMPLES / spec_name).read_text())
                asked = time.monotonic()
                plan = plan_it(client, spec)
                print(explain_plan(json.loads(plan.received)))
                print(f"Submitted, solved and fetched in {time.monotonic() - asked:.1f} s")
                publish_and_fetch(client, channel, plan)
                print()
    except Mismatch as mismatch:
        print(f"demo failed: {mismatch}", file=sys.stderr)
        return 1
    print(f"Demo passed in {time.monotonic() - started:.1f} s; the service has stopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
