"""The log: one format for all who speak, ids as fields, a line for each request, and no secrets."""

import io
import json
import logging
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.observability.logging import is_json, set_up
from api.observability.request_log import AccessLog
from api.settings import Settings
from api.store.database import Database
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.store.values import new_solve
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import thorough


def logged(**settings: object) -> io.StringIO:
    stream = io.StringIO()
    set_up(Settings(**{"log_format": "json", **settings}), logging.StreamHandler(stream), is_terminal=False)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_are_json_where_no_one_reads_along() -> None:
    for log_format, is_terminal, expected in (
        ("auto", False, True),
        ("auto", True, False),
        ("json", True, True),
        ("text", False, False),
    ):
        assert is_json(Settings(log_format=log_format), is_terminal=is_terminal) is expected


@pytest.mark.parametrize("name", ["api.execution.solves.runner", "uvicorn.error", "dbos", "sqlalchemy.pool"])
def test_all_speakers_have_one_form(name: str) -> None:
    stream = logged()
    logging.getLogger(name).warning("%d things", 3, extra={"solve_id": "abc"})
    (line,) = lines(stream)
    reported_at = line.pop("timestamp")
    assert datetime.fromisoformat(str(reported_at)).tzinfo is not None
    assert line == {"event": "3 things", "level": "warning", "logger": name, "solve_id": "abc"}


def test_fields_that_no_one_knows_are_left_out() -> None:
    stream = logged()
    logging.getLogger("dbos").warning("x", extra={"applicationVersion": "1", "secret": "s"})
    assert set(lines(stream)[0]) == {"event", "level", "logger", "timestamp"}


def test_the_level_holds_for_us_and_warnings_for_others() -> None:
    stream = logged(log_level="debug")
    logging.getLogger("api.x").debug("heard")
    logging.getLogger("alembic").info("not heard")
    assert [line["event"] for line in lines(stream)] == ["heard"]
    stream = logged(log_level="error")
    logging.getLogger("api.x").warning("not heard")
    assert lines(stream) == []


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_tracebacks_show_no_variables(log_format: str) -> None:
    stream = logged(log_format=log_format)
    secret = "".join(("hunter", "2"))
    try:
        raise RuntimeError("without " + str(len(secret)))
    except RuntimeError:
        logging.getLogger("api.x").exception("it failed")
    assert "RuntimeError: without 7" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_statements_are_logged_without_their_parameters(tmp_path: Path) -> None:
    stream = logged()
    secret = "-".join(("a", "secret", "digest"))  # tracebacks show lines of source, this one included
    database = Database.of_file(tmp_path / "db.sqlite")
    with database.engines.writer.begin() as connection:
        connection.exec_driver_sql("DROP TABLE solve_tags")
        connection.exec_driver_sql("DROP TABLE specs")
    try:
        database.for_tenant(DEFAULT_TENANT).accept(new_solve(1, request=secret), max_queued=1, reuse=False)
    except Exception:
        logging.getLogger("api.x").exception("it failed")
    database.close()
    assert "specs" in stream.getvalue()
    assert "a-secret-digest" not in stream.getvalue()


class Route:
    path_format = "/v1/plans/{digest}"


SCOPE = {"method": "GET", "route": Route, "state": {"request_id": "abc-1"}, "path": "/v1/plans/secret"}


def test_a_request_is_a_line_of_the_same_form() -> None:
    stream = io.StringIO()
    AccessLog(stream.write, as_json=True, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))(SCOPE, 200, 0.0123456, 42)
    assert lines(stream) == [
        {
            "event": "request",
            "request_id": "abc-1",
            "method": "GET",
            "route": "/v1/plans/{digest}",
            "status": 200,
            "milliseconds": 12.346,
            "bytes": 42,
            "level": "info",
            "logger": "access",
            "timestamp": "2026-01-02T00:00:00.000000Z",
        }
    ]
    assert list(lines(stream)[0])[-3:] == ["level", "logger", "timestamp"]


def test_a_request_as_text() -> None:
    stream = io.StringIO()
    AccessLog(stream.write, as_json=False, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))(SCOPE, 304, 0.001, 0)
    expected = "2026-01-02T00:00:00.000000Z GET /v1/plans/{digest} 304 1.000 ms 0 bytes request_id=abc-1\n"
    assert stream.getvalue() == expected


@thorough
def test_a_server_logs_requests_and_ends_of_solves_and_nothing_of_specs(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    secret = "a-name-that-stays-here"
    try:
        answer = server.client.post(
            f"/v1/solves?tag={secret}",
            json=tiny(name=secret, model__tables__0__name=secret),
            headers={"Prefer": "wait=30", "X-Request-Id": "mine-7", "Idempotency-Key": secret},
        )
        assert answer.status_code == 200
    finally:
        errors = server.stop(signal.SIGTERM)
    assert secret not in errors
    reported = [json.loads(line) for line in errors.splitlines()]
    (request,) = [line for line in reported if line.get("request_id") == "mine-7"]
    assert (request["route"], request["status"]) == ("/v1/solves", 200)
    assert request["milliseconds"] > 0
    assert request["bytes"] == len(answer.content)
    (end,) = [line for line in reported if line.get("solve_id")]
    assert (end["solve_id"], end["state"]) == (answer.json()["id"], "succeeded")
    assert "uvicorn.error" in {line["logger"] for line in reported}
    assert not any(line["logger"] == "uvicorn.access" for line in reported)


@thorough
def test_the_lines_of_requests_can_be_left_out(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path, access_log=0, log_format="text").wait_until_ready()
    errors = server.stop()
    assert "/readyz" not in errors
    assert "started" in errors.lower()
    assert os.linesep in errors


def test_what_the_queue_says_of_every_start_is_left_out() -> None:
    stream = logged()
    queue = logging.getLogger("dbos")
    queue.info("Applying DBOS system database schema migration 31")
    queue.warning("The SQLite system database is for development and testing. PostgreSQL is recommended.")
    queue.warning("a workflow was lost")
    assert [line["event"] for line in lines(stream)] == ["a workflow was lost"]


@thorough
def test_requests_are_logged_at_the_level_of_the_setting(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path, log_level="warning", log_format="json").wait_until_ready()
    server.client.get("/version")
    assert '"request"' not in server.stop()
