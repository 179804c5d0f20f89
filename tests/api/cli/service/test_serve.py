"""``shardplan serve`` that cannot start: one line that says why, and the exit code of trouble."""

import errno
import fcntl
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api.store.database import Database
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

SERVE = [sys.executable, "-c", "from api.cli import main; main()", "serve"]


def serve(folder: Path, *options: str, port: int = 0) -> subprocess.CompletedProcess[str]:
    command = [*SERVE, "--data-dir", str(folder), "--port", str(port), *options]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert answer.returncode == 4, answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return answer


def test_it_says_where_to_look_once_it_listens(tmp_path: Path) -> None:
    command = [*SERVE, "--data-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            reported = next(line for line in process.stderr if "pages are at" in line)
            (pages, console) = re.findall(r"http://127\.0\.0\.1:\d+/\w*", reported)
            assert httpx.get(pages).status_code == 200
            assert console == f"{pages}docs"
        finally:
            process.terminate()
            process.stderr.read()


@thorough
def test_a_folder_that_another_server_has(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "server.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (line,) = serve(tmp_path).stderr.splitlines()
    finally:
        os.close(descriptor)
    assert "another server works with" in line


@thorough
def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (line,) = serve(tmp_path / "file").stderr.splitlines()
    assert "cannot use" in line


@thorough
def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "shardplan.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 100)
    (line,) = serve(tmp_path).stderr.splitlines()
    assert "cannot use the database" in line


@thorough
def test_a_database_of_another_version(tmp_path: Path) -> None:
    database = Database.of_file(tmp_path / "shardplan.sqlite")
    with database.engines.writer.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    (line,) = serve(tmp_path).stderr.splitlines()
    assert "has schema 9999" in line


@thorough
@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_a_port_that_someone_else_has(tmp_path: Path, host: str, family: socket.AddressFamily) -> None:
    with socket.socket(family) as taken:
        try:
            taken.bind((host, 0))
        except OSError as error:
            pytest.skip(f"no {host} on this machine: {error}")
        taken.listen()
        port = taken.getsockname()[1]
        reported = serve(tmp_path, "--host", host, port=port).stderr.splitlines()
    why = "Address already in use (another port: --port, SHARDPLAN_PORT)"
    assert reported[-1] == f"shardplan: cannot listen on {host}, port {port}: {why}"


@thorough
def test_an_address_that_this_machine_does_not_have(tmp_path: Path) -> None:
    host = "192.0.2.1"  # for documentation: nobody has it
    reported = serve(tmp_path, "--host", host, "--insecure", port=8080).stderr.splitlines()
    why = f"{os.strerror(errno.EADDRNOTAVAIL)} (another host: --host, SHARDPLAN_HOST)"
    assert reported[-1] == f"shardplan: cannot listen on {host}, port 8080: {why}"


@thorough
def test_a_host_whose_name_is_none(tmp_path: Path) -> None:
    host = f"{64 * 'a'}.example"  # a part of a name has 63 characters at most
    reported = serve(tmp_path, "--host", host, "--insecure", port=8080).stderr.splitlines()
    why = "no host has a name like this (another host: --host, SHARDPLAN_HOST)"
    assert reported[-1] == f"shardplan: cannot listen on {host}, port 8080: {why}"
    assert not any("Traceback" in line for line in reported)


@thorough
def test_a_host_that_is_none(tmp_path: Path) -> None:
    host = "fe80::1%none"  # of an interface that is not there: refused before any server of names is asked
    with pytest.raises(socket.gaierror) as refused:
        socket.getaddrinfo(host, 8080)
    reported = serve(tmp_path, "--host", host, "--insecure", port=8080).stderr.splitlines()
    why = f"{refused.value.strerror} (another host: --host, SHARDPLAN_HOST)"
    assert reported[-1] == f"shardplan: cannot listen on {host}, port 8080: {why}"
