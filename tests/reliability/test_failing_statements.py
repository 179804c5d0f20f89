"""Whichever statement of the database fails, once: clients are told, may send again, and nothing is half done."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Self

import httpx
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from api.execution.maintenance import retry as retrying
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny
from tests.support.thorough import THOROUGH, thorough

#: Every so many statements one fails; 1 takes a minute or two.
_STEP = 1 if THOROUGH else 15
_MOST_TRIES = 10


class Fault:
    """Fails one statement, or commit, of some engines."""

    def __init__(self, engines: list[Engine]) -> None:
        self._lock = threading.Lock()
        self._left: int | None = None
        for engine in engines:
            event.listen(engine, "do_execute", self._on_statement)
            event.listen(engine, "do_execute_no_params", self._on_statement)
            self._watch_commits(engine)

    def _watch_commits(self, engine: Engine) -> None:
        commit: Callable[[object], None] = engine.dialect.do_commit

        def failing(connection: object) -> None:
            self._count()
            commit(connection)

        engine.dialect.do_commit = failing

    def _on_statement(self, *_: object) -> None:
        self._count()

    def _count(self) -> None:
        with self._lock:
            if self._left is None:
                return
            self._left -= 1
            if self._left > 0:
                return
            self._left = None
        raise sqlite3.OperationalError("disk I/O error")

    def after(self, number: int | None) -> Self:
        """Fail the statement of this number from now on, counted from 1; ``None``: none."""
        with self._lock:
            self._left = number
        return self

    @property
    def is_ahead(self) -> bool:
        """Whether the statement to fail was not seen yet."""
        with self._lock:
            return self._left is not None


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setattr(retrying, "_RETRY_SECONDS", 0.01)
    with Live.of(tmp_path) as live:
        yield live


def answered(send: Callable[[], httpx.Response], *statuses: int) -> httpx.Response:
    """Send until it is answered as it should be; every other answer must be a problem that says to send again."""
    for _ in range(_MOST_TRIES):
        answer = send()
        if answer.status_code in statuses:
            return answer
        assert_problem(answer, 503, "storage-unavailable")
        assert answer.headers["retry-after"]
    raise AssertionError("it was never answered")


def use(live: Live, number: int) -> str:
    """Everything that a client does with a solve, with keys and conditions that make it safe to send again."""
    name = f"used {number}"
    key = {"Idempotency-Key": name}
    spec = tiny(name=name, model__tables__0__num_embeddings=2000 + number)
    submitted = answered(lambda: live.post("/v1/solves?tag=used", spec, headers=key), 200, 202)
    where = submitted.headers["location"]
    solve = answered(lambda: live.get(f"{where}?wait=30"), 200).json()
    while solve["state"] != "succeeded":
        assert solve["state"] in ("queued", "running")
        solve = answered(lambda: live.get(f"{where}?wait=30"), 200).json()
    digest = solve["result"]["plan_digest"]
    plan = answered(lambda: live.get(f"/v1/plans/{digest}"), 200).json()
    assert plan["plan_digest"] == digest
    channel = f"/v1/channels/m{number}/prod"
    created = answered(
        lambda: live.put(channel, {"plan_digest": digest}, headers={"If-None-Match": "*"}), 200, 201, 412
    )
    if created.status_code == 412:  # the answer of the first one was lost, or so it must look
        assert answered(lambda: live.get(channel), 200).json()["version"] == 1
    assert answered(lambda: live.get(f"{channel}/plan"), 200).json()["plan_digest"] == digest
    answered(lambda: live.get("/v1/solves?tag=used"), 200)
    answered(lambda: live.get("/v1/plans"), 200)
    answered(lambda: live.post("/v1/plans:evaluate", {"spec": spec, "plan": plan}), 200)
    return where.rpartition("/")[2]


@thorough
def test_any_statement_may_fail(live: Live, tmp_path: Path) -> None:
    engines = live.app.state.services.store.engines
    fault = Fault([engines.readers, engines.writer.engine])
    use(live, 0)
    solves = set()
    # How many statements a solve takes depends on when its plans are found: go on until none was left to fail.
    failed = []
    for number in count(1, _STEP):
        fault.after(number)
        solves.add(use(live, 1 + number))
        if fault.is_ahead:
            break
        failed.append(number)
    fault.after(None)
    assert failed[-1] > 40 - _STEP  # else the fault is not where the statements are
    num_solves = 2 + len(failed)
    assert len(solves) == num_solves - 1
    assert live.num_solves() == num_solves
    with sqlite3.connect(tmp_path / "shardplan.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        states = connection.execute("SELECT state, count(*) FROM solves GROUP BY state")
        assert states.fetchall() == [("succeeded", num_solves)]
        for table in ("plans", "plan_summaries"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (num_solves,), table
