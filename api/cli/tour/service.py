"""The service of the tour: on a free port, with its data in the folder of the tour."""

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from api.cli.errors import ServerTrouble

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1


class TourService:
    """A service that is started when it is first needed, and stopped at the end."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._command, self._folder, self._environment = command, folder, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def url(self) -> str:
        """Return the address of the service, which is ready.

        Raises
        ------
        ServerTrouble
            The service ends, or is not ready in time; the message names its log.
        """
        if self._process is None:
            port = _free_port()
            self._url = f"http://127.0.0.1:{port}"
            arguments = [*self._command, "serve", "--port", str(port), "--data-dir", "data"]
            with (self._folder / "service.log").open("ab") as log:
                self._process = subprocess.Popen(
                    arguments, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            self._wait(self._process)
        return self._url

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if httpx.get(f"{self._url}/readyz", timeout=1.0, trust_env=False).is_success:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(_POLL_SECONDS)
        raise ServerTrouble(f"the service of the tour did not start; its log is {self._folder / 'service.log'}")

    def stop(self) -> None:
        """End the service, if it runs."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
