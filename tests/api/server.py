"""A server in a process of its own, on a port of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

PROGRAM = """
import sys
from api.server import serve
from api.settings import Settings
from tests.api import planners
serve(Settings(), **({"plan": getattr(planners, sys.argv[1])} if sys.argv[1:] else {}))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One server process."""

    def __init__(self, root: Path, folder: Path, *, planner: str | None = None) -> None:
        """``planner`` names a stand-in of ``tests.api.planners``."""
        self.port = free_port()
        environment = {"SHARDPLAN_DATA_DIR": str(folder), "SHARDPLAN_PORT": str(self.port), "PYTHONPATH": str(root)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *([] if planner is None else [planner])],
            cwd=root,
            env={**os.environ, **environment, "SHARDPLAN_TEST_FOLDER": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)

    def wait_until_ready(self) -> "Server":
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                assert self.process.poll() is None, self.process.stderr.read().decode()
                time.sleep(0.05)
        raise AssertionError("the server did not become ready")

    def stop(self, signal_number: int = signal.SIGTERM) -> str:
        """End the server and return what it wrote to its log."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        _, errors = self.process.communicate(timeout=60)
        return errors.decode()
