"""A Ray cluster of one's own on this machine: two processors, no dashboard."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.service.server import free_port
from tests.support.service.stand_ins import VARIABLE
from tests.support.waiting import PATIENCE_SECONDS


class RayCluster:
    """One head node. Its planners leave their process ids in ``folder``."""

    def __init__(self, root: Path) -> None:
        # Not below pytest's folders: the paths of its sockets would be too long.
        self.folder = Path(tempfile.mkdtemp(prefix="shardplan-ray-"))
        self._root, self._port = root, free_port()
        self.address = f"127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        """Start it, again on the same port."""
        environment = {"PYTHONPATH": str(self._root), VARIABLE: str(self.folder)}
        options = {
            "--port": self._port,
            "--node-ip-address": "127.0.0.1",
            "--num-cpus": 2,
            "--object-store-memory": 100_000_000,
            "--temp-dir": self.folder / "ray",
            "--include-dashboard": "false",
        }
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
        self._log = (self.folder / "log").open("w+b")
        self._process = subprocess.Popen(
            [*command, *(f"{name}={value}" for name, value in options.items())],
            env={**os.environ, **environment},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"Ray runtime started" not in (message := (self.folder / "log").read_bytes()):
            assert self._process.poll() is None, message.decode()
            assert time.monotonic() < deadline, message.decode()
            time.sleep(0.2)

    def stop(self) -> None:
        """Kill all of it, at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    def close(self) -> None:
        """Stop it, and remove what it kept."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
