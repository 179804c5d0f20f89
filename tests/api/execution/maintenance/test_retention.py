"""What is old goes, by a clock that the tests set; what is needed stays."""

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from api.execution.maintenance.retention import RetentionJob, cutoffs, prune
from api.observability.metrics import WorkMetrics
from api.settings import Settings
from api.store.database import Database
from api.store.maintenance.retention import PRUNED, Cutoffs, Retention
from api.store.tenants import DEFAULT_TENANT
from tests.api.cli.conftest import run as run
from tests.support.cli.run import Run
from tests.support.contracts.store.maintenance import ended
from tests.support.contracts.store.values import new_solve, solve_id
from tests.support.service.live import Live, settings_for
from tests.support.service.specs import tiny
from tests.support.thorough import thorough

DAY = 86_400.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "data").mkdir()
    database = Database.of_file(tmp_path / "data" / "shardplan.sqlite")
    yield database
    database.close()


def job(store: object, settings: Settings, *, now: float, **options: float) -> tuple[RetentionJob, CollectorRegistry]:
    registry = CollectorRegistry()
    return RetentionJob(store, settings, WorkMetrics(registry), clock=lambda: now, **options), registry


def counted(registry: CollectorRegistry) -> dict[str, float]:
    found = {kind: registry.get_sample_value("shardplan_pruned_total", {"kind": kind}) for kind in PRUNED}
    return {kind: number for kind, number in found.items() if number}


def test_nothing_but_keys_of_requests_is_old_by_default(tmp_path: Path) -> None:
    assert cutoffs(settings_for(tmp_path), now=10 * DAY) == Cutoffs(request_keys=9 * DAY)


def test_each_setting_says_when_its_things_are_old(tmp_path: Path) -> None:
    settings = settings_for(
        tmp_path, retain_solves_days=1, retain_events_days=2.5, retain_plans_days=3, retain_audit_days=4
    )
    expected = Cutoffs(request_keys=9 * DAY, solves=9 * DAY, events=7.5 * DAY, plans=7 * DAY, audit=6 * DAY)
    assert cutoffs(settings, now=10 * DAY) == expected


def test_what_is_removed_is_counted_and_logged(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1, 4):
        ended(database, number, at=number * DAY, key=f"k{number}")
    settings = settings_for(tmp_path, retain_solves_days=2, retain_plans_days=2)
    with caplog.at_level(logging.INFO, "api.execution.maintenance.retention"):
        for now, expected in (
            (2.5, {}),
            (3.5, {"request_keys": 1, "solves": 1, "plans": 1}),
            (9.5, {"request_keys": 1, "solves": 2, "plans": 2}),
        ):
            at_that_time, registry = job(database, settings, now=now * DAY)
            at_that_time.run()
            assert counted(registry) == expected
    assert [record.message for record in caplog.records] == [
        "removed what is older than it is kept: 1 request keys, 1 solves, 1 plans",
        "removed what is older than it is kept: 1 request keys, 2 solves, 2 plans",
    ]


class Flaky:
    """A store that fails once, and then tells who asks."""

    def __init__(self) -> None:
        self.num_runs, self.ran = 0, threading.Event()

    @contextmanager
    def pruning(self) -> Iterator[bool]:
        self.num_runs += 1
        if self.num_runs == 1:
            raise OSError("the disk is gone")
        yield True

    def prune(self, kind: str, _before: Cutoffs, *, limit: int) -> int:
        if kind == PRUNED[-1]:
            self.ran.set()
        return 0


def test_the_thread_goes_on_after_a_failure_and_stops_at_once(tmp_path: Path) -> None:
    store = Flaky()
    next_to, _ = job(store, settings_for(tmp_path), now=0.0, first_seconds=0.01, every_seconds=0.01)
    next_to.start()
    assert store.ran.wait(10)
    next_to.stop()
    after = store.num_runs
    assert after >= 2
    time.sleep(0.05)
    assert store.num_runs == after


def test_a_job_that_is_stopped_leaves_the_rest_for_later(database: Database, tmp_path: Path) -> None:
    for number in range(1, 4):
        ended(database, number, at=float(number))
    stopping = threading.Event()
    stopping.set()
    assert not any(prune(database, Cutoffs(solves=9.0), stopping=stopping).values())
    assert prune(database, Cutoffs(solves=9.0), batch=1)["solves"] == 3


@thorough
def test_writers_get_their_turn_between_batches(database: Database) -> None:
    """SQLite gives its lock to whoever asks at the right moment, not to who waits the longest."""
    for number in range(1, 9):
        ended(database, number, at=float(number))
    thread = threading.Thread(target=prune, args=(database, Cutoffs(solves=99.0)), kwargs={"batch": 1})
    thread.start()
    number, own = 100, database.for_tenant(DEFAULT_TENANT)
    while thread.is_alive():
        own.accept(new_solve(number), max_queued=10**6, reuse=False)
        number += 1
        time.sleep(0.02)
    thread.join()
    assert number > 102  # several were accepted while solves were removed
    assert database.any_solve(solve_id(8)) is None


def test_two_never_prune_at_the_same_time(database: Database) -> None:
    ended(database, 1, at=1.0)
    with database.pruning():
        assert prune(database, Cutoffs(solves=9.0)) is None
    assert database.any_solve(solve_id(1)) is not None


def removed(document: Mapping[str, object]) -> dict[str, int]:
    return {kind: number for kind, number in document["removed"].items() if number}


def test_the_command_reports_first_and_removes_then(database: Database, tmp_path: Path, run: Run) -> None:
    ended(database, 1, at=time.time() - 3 * DAY)
    ended(database, 2, at=time.time())
    options = ["--data-dir", tmp_path / "data", "--solves-days", "2", "--plans-days", "2", "--events-days", "1"]
    foretold = run("prune", "--dry-run", *options)
    assert (foretold.code, foretold.document["dry_run"]) == (0, True)
    assert removed(foretold.document) == {"solves": 1, "plans": 1}
    assert database.any_solve(solve_id(1)) is not None
    done = run("prune", *options)
    assert (done.document["dry_run"], removed(done.document)) == (False, {"solves": 1, "plans": 1})
    assert database.any_solve(solve_id(1)) is None
    assert removed(run("prune", "--data-dir", tmp_path / "data").document) == {}
    with database.pruning():
        busy = run("prune", *options)
    assert busy.code == 4
    assert "another process" in busy.err


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [(["--data-dir", "nothing"], "there is no database"), (["--solves-days", "0.5"], "setting retain_solves_days")],
)
def test_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, arguments: list[str], reported: str
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run("prune", *arguments)
    assert (answer.code, answer.out) == (1, "")
    assert reported in answer.err
    assert list(tmp_path.iterdir()) == []


@thorough
def test_a_service_serves_what_is_promoted_after_all_else_is_gone(tmp_path: Path) -> None:
    with Live.of(tmp_path) as live:
        preserved = live.solve(tiny())["result"]["plan_digest"]
        other = live.solve(tiny(solver__seed=1, hardware__ranks_per_host=1))["result"]["plan_digest"]
        assert preserved != other
        live.put("/v1/channels/c", {"plan_digest": preserved}, headers={"If-None-Match": "*"})
        before = live.get("/v1/channels/c/plan").content
        retention = Retention(live.app.state.services.store.engines)
        done = prune(retention, Cutoffs(solves=1e12, plans=1e12, events=1e12, audit=1e12))
        assert removed({"removed": done}) == {"solves": 2, "plans": 1}
        assert live.get("/v1/channels/c/plan").content == before
        assert live.get(f"/v1/plans/{preserved}/explanation").status_code == 200
        assert live.get("/v1/solves").json()["solves"] == []
    with Live.of(tmp_path) as live:
        assert live.get(f"/v1/plans/{other}").status_code == 404
        assert json.loads(live.get(f"/v1/plans/{preserved}").content)["plan_digest"] == preserved
        # What was forgotten is solved again.
        assert live.solve(tiny(solver__seed=1, hardware__ranks_per_host=1))["result"]["plan_digest"] == other
