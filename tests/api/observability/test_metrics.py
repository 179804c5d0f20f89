"""Metrics: what happened is counted under the documented names, with labels that callers cannot make up."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from api.execution.maintenance.takeover import EngineWatch
from api.observability.metrics import WorkMetrics, new_registry
from api.store.database import Database
from benchmarks.service.local_postgres import Postgres
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.server import free_port, start
from tests.support.service.specs import TINY, tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until

Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(text: str) -> Figures:
    """Samples of a scrape by name and labels."""
    families = text_string_to_metric_families(text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value for one in families for sample in one.samples
    }


def scrape(live: Live) -> Figures:
    answer = live.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return read(answer.text)


def figure(figures: Figures, name: str, **labels: str) -> float:
    return figures.get((name, tuple(sorted(labels.items()))), 0.0)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Live]:
    with Live.of(tmp_path) as live:
        yield live


def test_requests_are_counted_by_route_and_never_by_address(service: Live) -> None:
    digest = service.solve(TINY)["result"]["plan_digest"]
    assert service.get(f"/v1/plans/{digest}").status_code == 200
    assert service.get(f"/v1/plans/{digest}?bogus=1").status_code == 400
    for path in ("/nothing", "/v1/nothing/secret-thing", "/v1/plans/sha256:0"):
        service.get(path)
    service.request("BREW", "/livez")
    text = service.get("/metrics").text
    figures = read(text)
    count = "shardplan_http_request_seconds_count"
    assert figure(figures, count, route="/v1/plans/{digest}", method="GET", status="2xx") == 1
    assert figure(figures, count, route="/v1/plans/{digest}", method="GET", status="4xx") == 2
    assert figure(figures, count, route="/v1/solves", method="POST", status="2xx") == 1
    assert figure(figures, count, route="other", method="GET", status="4xx") == 2
    assert figure(figures, count, route="/livez", method="other", status="4xx") == 1
    for made_up in ("secret-thing", "BREW", digest, "bogus"):
        assert made_up not in text


def test_a_solve_leaves_its_figures(service: Live) -> None:
    service.solve(TINY)
    figures = scrape(service)
    assert figure(figures, "shardplan_solves", state="succeeded") == 1
    assert (
        figure(figures, "shardplan_solves_ended_total", state="succeeded", reason="FEASIBLE")
        + figure(figures, "shardplan_solves_ended_total", state="succeeded", reason="OPTIMAL")
        == 1
    )
    assert figure(figures, "shardplan_solve_seconds_count", state="succeeded") == 1
    assert figure(figures, "shardplan_solve_queue_seconds_count") == 1
    assert figure(figures, "shardplan_incumbents_total") >= 1
    assert figure(figures, "shardplan_queue_depth") == 0
    assert figure(figures, "shardplan_store_up") == 1


@thorough
def test_what_waits_and_what_fails_is_reported(tmp_path: Path) -> None:
    leave_in(tmp_path)
    with Live.of(tmp_path, plan=planners.hang, solver_grace_seconds=0.5) as live:
        first = live.post("/v1/solves", tiny(solver__time_limit_seconds=1)).json()["id"]
        live.post("/v1/solves", tiny(name="second", solver__time_limit_seconds=60))
        wait_until(lambda: figure(scrape(live), "shardplan_solves", state="running"))
        assert figure(scrape(live), "shardplan_queue_depth") == 1
        assert live.get(f"/v1/solves/{first}?wait=30").json()["state"] == "failed"
        figures = scrape(live)
        assert figure(figures, "shardplan_solves_ended_total", state="failed", reason="time-limit") == 1
        assert figure(figures, "shardplan_solve_seconds_sum", state="failed") >= 1.5


def test_the_caches_report_their_use(service: Live) -> None:
    digest = service.solve(TINY)["result"]["plan_digest"]
    for _ in range(3):
        service.get(f"/v1/plans/{digest}")
    service.get(f"/v1/plans/{digest}?rank=1")
    figures = scrape(service)
    assert figure(figures, "shardplan_cache_misses_total", cache="plans") == 2, "each form was made once"
    assert figure(figures, "shardplan_cache_hits_total", cache="plans") >= 2
    assert figure(figures, "shardplan_cache_misses_total", cache="slices") == 1
    assert figure(figures, "shardplan_cache_bytes", cache="plans") > len(service.get(f"/v1/plans/{digest}").content)


@thorough
def test_a_store_that_fails_leaves_the_rest(service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise OperationalError("select", {}, Exception("disk I/O error"))

    service.get("/livez")
    monkeypatch.setattr(Database, "num_solves_by_state", fail)
    figures = scrape(service)
    assert figure(figures, "shardplan_store_up") == 0
    assert not any(name == "shardplan_solves" for name, _ in figures)
    assert figure(figures, "shardplan_http_request_seconds_count", route="/livez", method="GET", status="2xx") == 1


def test_openmetrics_is_answered_to_those_who_accept_it(service: Live) -> None:
    answer = service.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


@thorough
def test_each_app_counts_for_itself(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        with Live.of(tmp_path / folder) as live:
            live.get("/livez")
            name = "shardplan_http_request_seconds_count"
            assert figure(scrape(live), name, route="/livez", method="GET", status="2xx") == 1


def test_what_another_life_left_running_is_counted_as_taken_over() -> None:
    class OneIsLeft:
        def release_solves(self, executor_id: str | None) -> int:
            return 1 if executor_id is None else 0  # nobody else can be

    class Me:
        id, life, host = "me", "second", "here"

    registry = new_registry()
    EngineWatch(OneIsLeft(), None, Me(), WorkMetrics(registry), is_shared=False).enter()
    assert registry.get_sample_value("shardplan_solves_taken_over_total") == 1


def test_every_metric_is_documented_with_its_labels_and_every_documented_one_is_there(
    service: Live, root: Path
) -> None:
    service.solve(TINY)
    page = (root / "docs" / "operations.md").read_text()
    section = page.partition("\n## Metrics\n")[2].partition("\n## ")[0]
    documented: dict[str, set[str]] = {}
    for names, labels in re.findall(r"^\| (`[^|]+`) \|([^|]*)\|", section, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            documented[name] = set(re.findall(r"`(\w+)`", labels))
    reported: dict[str, set[str]] = {}
    for family in service.app.state.services.metrics.collect():
        name = {"counter": f"{family.name}_total", "info": f"{family.name}_info"}.get(family.type, family.name)
        labels = {label for sample in family.samples for label in sample.labels if label != "le"}
        reported[name] = set() if family.type == "info" else labels
    # No fit ran here: its labels are those of the metric.
    reported["shardplan_fit_seconds"] = {"state"}
    assert reported == documented


@thorough
def test_a_worker_answers_scrapes_on_its_port(root: Path, tmp_path: Path, postgres: Postgres) -> None:
    port = free_port()
    url = postgres.new_database()
    worker = start("run_worker", "work", root, tmp_path, database_url=url, worker_metrics_port=port)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
                break
            except httpx.TransportError:
                assert worker.poll() is None, worker.stderr.read().decode()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        figures = read(text)
        assert figure(figures, "shardplan_solve_queue_seconds_count") == 0
        assert ("shardplan_incumbents_total", ()) in figures
    finally:
        worker.terminate()
        worker.communicate(timeout=PATIENCE_SECONDS)
    assert worker.returncode == 0
