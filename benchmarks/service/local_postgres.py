"""A PostgreSQL server of one's own, in a temporary folder, for benchmarks and tests."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

#: Debian keeps the programs of each version apart.
_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _program(name: str) -> str | None:
    for folder in _FOLDERS:
        if (folder / name).exists():
            return str(folder / name)
    return shutil.which(name)


class NoPostgres(Exception):
    """There are no programs of PostgreSQL on this machine."""


class Postgres:
    """One server, which can be stopped and started again."""

    def __init__(self) -> None:
        if _program("initdb") is None:
            raise NoPostgres("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        # Not below pytest's folders, which only the user of the tests may enter.
        self._base = folder = Path(tempfile.mkdtemp(prefix="shardplan-postgres-"))
        folder.chmod(0o755)
        self._folder = folder / "cluster"
        self._folder.mkdir(parents=True)
        self._socket = folder / "socket"
        self._socket.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._user: int | None = None
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            self._user = pwd.getpwnam("postgres").pw_uid
            for path in (self._folder, self._socket):
                os.chown(path, self._user, -1)
        self._run("initdb", "-D", str(self._folder), "-U", "someone", "-A", "trust", "-E", "UTF8", "--no-sync")
        settings = f"port={self.port}\nunix_socket_directories='{self._socket}'\nlisten_addresses='127.0.0.1'\n"
        with (self._folder / "postgresql.conf").open("a") as file:
            file.write(settings + "fsync=off\nshared_buffers=32MB\nmax_connections=200\n")

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._run("pg_ctl", "-D", str(self._folder), "-w", "-l", str(self._socket / "log"), "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop as a crash does, or with ``fast`` as an operator does."""
        self._run("pg_ctl", "-D", str(self._folder), "-w", "-m", mode, "stop")

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it answer nothing while the block runs, not even no."""
        head = int((self._folder / "postmaster.pid").read_text().split()[0])
        sessions = Path(f"/proc/{head}/task/{head}/children").read_text().split()
        family = [head, *map(int, sessions)]
        for process in family:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in family:
                os.kill(process, signal.SIGCONT)

    def remove(self) -> None:
        """Stop and delete it."""
        with contextlib.suppress(AssertionError):
            self.stop()
        shutil.rmtree(self._base, ignore_errors=True)

    def new_database(self, *, like: str | None = None) -> str:
        """Create a database, empty or ``like`` another one without connections, and return its address."""
        name = f"db_{uuid.uuid4().hex[:12]}"
        template = "" if like is None else f' TEMPLATE "{like.rpartition("/")[2]}"'
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"{template}')
        return self._url(name)

    def _url(self, name: str) -> str:
        return f"postgresql://someone@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *arguments: str) -> None:
        path = _program(program)
        assert path is not None
        answer = subprocess.run(
            [path, *arguments],
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
