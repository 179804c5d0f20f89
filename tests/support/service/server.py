"""A server in a process of its own, on a port of its own."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import httpx

from tests.support.service.patient import patient_client
from tests.support.service.stand_ins import VARIABLE
from tests.support.waiting import PATIENCE_SECONDS

PROGRAM = """
import sys
from api.cli.service.{module} import {function}
from api.settings import Settings
from tests.support.service import failpoints
if sys.argv[1:]:
    from tests.support.service import planners  # loads the solvers, which servers do not
{function}(Settings(), **({{"plan": getattr(planners, sys.argv[1])}} if sys.argv[1:] else {{}}))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(
    module: str,
    function: str,
    root: Path,
    folder: Path,
    *,
    planner: str | None = None,
    log: IO[bytes] | int = subprocess.PIPE,
    **settings: object,
) -> "subprocess.Popen[bytes]":
    """Start a process with settings, and its data in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {f"SHARDPLAN_{name.upper()}": str(value) for name, value in settings.items()}
    environment |= {"SHARDPLAN_DATA_DIR": str(folder), "PYTHONPATH": str(root), VARIABLE: str(folder)}
    program = PROGRAM.format(module=module, function=function)
    return subprocess.Popen(
        [sys.executable, "-c", program, *([] if planner is None else [planner])],
        cwd=root,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=log,
    )


class Server:
    """One server process."""

    def __init__(self, root: Path, folder: Path, *, planner: str | None = None, **settings: object) -> None:
        """``planner`` names a stand-in of ``tests.support.service.planners``."""
        self.port = free_port()
        # No pipe: nobody reads it while the server runs, and a full one would stop the server.
        self._log = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (as long as the server)
        self.process = start(
            "run_server", "serve", root, folder, planner=planner, log=self._log, port=self.port, **settings
        )
        self.client = patient_client(f"http://127.0.0.1:{self.port}")

    def wait_until_ready(self) -> "Server":
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                assert self.process.poll() is None, self._stated()
                time.sleep(0.05)
        raise AssertionError("the server did not become ready")

    def stop(self, signal_number: int = signal.SIGTERM) -> str:
        """End the server and return what it wrote to its log."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        self.process.wait(timeout=PATIENCE_SECONDS)
        return self._stated()

    def _stated(self) -> str:
        """Return the log of a process that has ended."""
        if not self._log.closed:
            with self._log as log:
                log.seek(0)
                self._text = log.read().decode()
        return self._text
