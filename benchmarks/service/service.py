"""The service as people run it: ``shardplan serve`` in a process of its own, with an empty data folder."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
SHARDPLAN = (sys.executable, "-c", "from api.cli import main; main()")
START_SECONDS, STOP_SECONDS = 60.0, 15.0
_LOOK_SECONDS = 0.01


class NotServed(Exception):
    """The service did not do what was asked of it; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running service."""

    client: httpx.Client
    folder: Path  # of its data
    process_id: int
    start_seconds: float  # from the start of the process until it said that it takes work


def environment() -> dict[str, str]:
    """Return an environment in which a new process runs this version, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextlib.contextmanager
def running_service(**settings: object) -> Iterator[Service]:
    """Run ``shardplan serve`` on a free port, with settings by their names.

    Raises ``NotServed`` with its log where it does not start.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shardplan-")))
        log = stack.enter_context((folder / "log").open("wb"))
        port = free_port()
        began = time.monotonic()
        process = subprocess.Popen(
            [*SHARDPLAN, "serve", "--port", str(port), "--data-dir", str(folder / "data")],
            stdout=log,
            stderr=log,
            env={**environment(), **{f"SHARDPLAN_{name.upper()}": str(value) for name, value in settings.items()}},
        )
        stack.callback(_stop, process)
        client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90.0))
        while not _is_ready(client):
            if process.poll() is not None or time.monotonic() - began > START_SECONDS:
                raise NotServed(f"the service did not start: {(folder / 'log').read_text(errors='replace')}")
            time.sleep(_LOOK_SECONDS)
        seconds = time.monotonic() - began
        yield Service(client=client, folder=folder / "data", process_id=process.pid, start_seconds=seconds)


def report(measure: Callable[[Service], Iterator[str]], **settings: object) -> int:
    """Print what is measured of a service; return 1 where a line says MISSED, and 2 where nothing could be measured."""
    missed = False
    try:
        with running_service(**settings) as service:
            for line in measure(service):
                missed |= "MISSED" in line
                print(line, flush=True)
    except NotServed as error:
        print(f"nothing to measure: {error}", file=sys.stderr)
        return 2
    return int(missed)


def answer_of(response: httpx.Response) -> dict[str, object]:
    """Return the document of an answer; raises ``NotServed`` with the problem where it is one."""
    if not response.is_success:
        raise NotServed(f"{response.request.method} {response.request.url.path}: {response.text}")
    document: dict[str, object] = response.json()
    return document


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
