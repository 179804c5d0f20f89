"""Servers and workers in processes of their own, on one database, which can be killed and started again."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.service.local_postgres import Postgres
from benchmarks.service.service import ROOT, SHARDPLAN, environment, free_port

_READY_SECONDS = 120.0


@dataclass(slots=True)
class Member:
    """One server or worker; its data folder and port stay when it is started again."""

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    port: int | None  # None of a worker
    process: "subprocess.Popen[bytes] | None" = None
    num_starts: int = 0

    def start(self) -> None:
        """Start it; it is not ready yet."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env={**environment(), **self.environment}, cwd=ROOT, stdout=log, stderr=log
            )
        self.num_starts += 1

    def end(self, number: int = signal.SIGKILL) -> int:
        """End it with a signal and return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait()


@dataclass(slots=True)
class Fleet:
    """All that works on one database."""

    folder: Path
    postgres: Postgres | None
    members: list[Member] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        """Where the servers listen."""
        return [f"http://127.0.0.1:{member.port}" for member in self.members if member.port is not None]

    def wait_until_ready(self) -> None:
        """Return once every server takes requests."""
        deadline = time.monotonic() + _READY_SECONDS
        for url in self.urls:
            while not _is_ready(url):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{url} is not ready; see the logs in {self.folder}")
                time.sleep(0.1)


@contextlib.contextmanager
def fleet(*, on_postgres: bool, num_servers: int, num_workers: int, **settings: object) -> Iterator[Fleet]:
    """Start servers and workers; they are gone after the block. One server is all that a file allows."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shardplan-fleet-")))
        postgres: Postgres | None = None
        shared: dict[str, str] = {}
        if on_postgres:
            postgres = Postgres()
            stack.callback(postgres.remove)
            postgres.start()
            shared["SHARDPLAN_DATABASE_URL"] = postgres.new_database()
        shared |= {f"SHARDPLAN_{name.upper()}": str(value) for name, value in settings.items()}
        made = Fleet(folder, postgres)
        stack.callback(_end_all, made)
        for kind, number in (("serve", num_servers), ("worker", num_workers)):
            for index in range(number):
                name = f"{kind}-{index}"
                port = free_port() if kind == "serve" else None
                own = {**shared, "SHARDPLAN_DATA_DIR": str(folder / name)}
                if port is not None:
                    own["SHARDPLAN_PORT"] = str(port)
                member = Member(name, [*SHARDPLAN, kind], own, folder / f"{name}.log", port)
                made.members.append(member)
                member.start()
        yield made


def _end_all(made: Fleet) -> None:
    for member in made.members:
        if member.process is not None and member.process.poll() is None:
            member.end()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False
