"""Spans: who called, what was solved, and nothing of what was sent; and nothing at all where nobody asks."""

import asyncio
import http.server
import io
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import Receive, Scope, Send

from api.cli.errors import ServerTrouble
from api.cli.service.process import start_errors
from api.http.app import create_app
from api.observability.logging import set_up
from api.observability.request_log import AccessLog
from api.observability.tracing import NO_TRACING, TracedRequestsMiddleware, Tracing, tracing_of
from api.settings import Settings
from tests.support.service import planners
from tests.support.service.live import Live, settings_for
from tests.support.service.specs import tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

CALLER = "0af7651916cd43dd8448eb211c80319c"


class Traced:
    """A service whose spans and log stay in memory."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.exporter, self.log = InMemorySpanExporter(), io.StringIO()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        tracing = Tracing(provider.get_tracer("test"), provider.shutdown)
        settings = settings_for(folder)
        set_up(Settings(log_format="json"), logging.StreamHandler(self.log), is_terminal=False)
        observers = [AccessLog(self.log.write, as_json=True)]
        self.live = Live(create_app(settings, observers=observers, tracing=tracing, **options))

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        """The one span of a name, which may end a moment after its answer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := self.spans(name)):
            assert time.monotonic() < deadline, [span.name for span in self.exporter.get_finished_spans()]
            time.sleep(0.02)
        (span,) = found
        return span

    def lines(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]


def trace_of(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    service = Traced(tmp_path)
    with service.live:
        yield service


def test_a_request_is_a_span_below_that_of_its_caller(traced: Traced) -> None:
    traced.live.get(
        "/v1/plans/sha256:0?bogus=secret-query",
        headers={"traceparent": f"00-{CALLER}-b7ad6b7169203331-01", "X-Request-Id": "abc-1"},
    )
    span = traced.span("GET /v1/plans/{digest}")
    assert trace_of(span) == CALLER
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert dict(span.attributes) == {
        "http.request.method": "GET",
        "http.route": "/v1/plans/{digest}",
        "http.response.status_code": 400,
        "shardplan.request_id": "abc-1",
    }
    (line,) = traced.lines("request")
    assert line["trace_id"] == CALLER
    assert "secret-query" not in span.to_json()


def test_requests_without_a_caller_have_traces_of_their_own(traced: Traced) -> None:
    for header in ({}, {"traceparent": "no trace"}, {"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"}):
        traced.live.get("/livez", headers=header)
    spans = traced.spans("GET /livez")
    assert len({trace_of(span) for span in spans}) == 3
    assert all(span.parent is None for span in spans)


def test_a_solve_is_a_trace_with_its_publication_and_nothing_of_the_spec(traced: Traced) -> None:
    solve = traced.live.solve(tiny(name="secret-name", model__tables__0__name="secret-table"))
    solving, publishing = traced.span("solve"), traced.span("publish")
    assert solving.parent is None
    assert publishing.parent is not None
    assert publishing.parent.span_id == solving.context.span_id
    executor = solving.attributes["shardplan.executor_id"]
    assert executor
    assert dict(solving.attributes) == {
        "shardplan.solve_id": solve["id"],
        "shardplan.attempt": 1,
        "shardplan.executor_id": executor,
        "shardplan.state": "succeeded",
        "shardplan.reason": solve["result"]["termination"]["reason"],
    }
    assert dict(publishing.attributes) == {
        "shardplan.solve_id": solve["id"],
        "shardplan.plan_digest": solve["result"]["plan_digest"],
    }
    asking = traced.span("POST /v1/solves")
    assert asking.attributes["shardplan.solve_id"] == solve["id"]
    assert trace_of(asking) != trace_of(solving)
    (line,) = traced.lines("the solve ended")
    assert line["trace_id"] == trace_of(solving)
    for span in traced.exporter.get_finished_spans():
        assert "secret" not in span.to_json()


def test_the_span_of_a_caller_who_hangs_up_is_no_failure() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def hang_up(_scope: Scope, _receive: Receive, _send: Send) -> None:
        """Answer nobody."""

    async def nothing(*_: object) -> dict[str, object]:
        return {}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(TracedRequestsMiddleware(hang_up, tracer=provider.get_tracer("test"))(scope, nothing, nothing))
    (span,) = exporter.get_finished_spans()
    assert span.attributes["http.response.status_code"] == 499
    assert span.status.is_ok


def test_failures_are_marked_without_their_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Traced(tmp_path, plan=planners.raise_defect)

    def fail(*_: object, **__: object) -> object:
        raise RuntimeError("secret-message")

    with service.live as live:
        assert live.solve(tiny())["state"] == "failed"
        monkeypatch.setattr(type(live.app.state.services.store), "statistics_records", fail)
        assert live.get("/v1/statistics").status_code == 500
    for name in ("solve", "GET /v1/statistics"):
        span = service.span(name)
        assert not span.status.is_ok
        assert span.events == ()
        assert "secret-message" not in span.to_json()
    assert service.span("solve").attributes["shardplan.state"] == "failed"


@thorough
def test_nothing_is_traced_by_default(tmp_path: Path) -> None:
    assert tracing_of(settings_for(tmp_path)) is NO_TRACING
    with Live.of(tmp_path) as live:
        assert live.solve(tiny())["state"] == "succeeded"
    stream = io.StringIO()
    set_up(Settings(log_format="json"), logging.StreamHandler(stream), is_terminal=False)
    logging.getLogger("api.x").warning("w")
    assert "trace_id" not in stream.getvalue()


def test_a_missing_extra_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for(tmp_path, traces="otlp")
    for module in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(ServerTrouble, match=r"pip install 'shardplan\[otel\]'"), start_errors(settings):
                tracing_of(settings)


class Collector(http.server.ThreadingHTTPServer):
    """Takes spans as collectors do."""

    def __init__(self) -> None:
        self.received: list[tuple[str, ExportTraceServiceRequest]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_spans_are_sent_to_a_collector_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector()
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    try:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=tests")
        tracing = tracing_of(settings_for(tmp_path, traces="otlp"))
        tracing.tracer.start_span("one").end()
        tracing.shutdown()
    finally:
        collector.shutdown()
        thread.join()
        collector.server_close()
    ((path, request),) = collector.received
    assert path == "/v1/traces"
    (resource,) = request.resource_spans
    attributes = {item.key: item.value.string_value for item in resource.resource.attributes}
    assert attributes["service.name"] == "shardplan"
    assert attributes["deployment.environment.name"] == "tests"
    assert [span.name for span in resource.scope_spans[0].spans] == ["one"]


@thorough
def test_a_collector_that_is_silent_does_not_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")  # seconds
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        tracing = tracing_of(settings_for(tmp_path, traces="otlp"))
        tracing.tracer.start_span("one").end()
        began = time.monotonic()
        tracing.shutdown()
        assert 2.5 < time.monotonic() - began < PATIENCE_SECONDS
    # What goes on in the background draws random waits, which property tests of the same process would take for theirs.
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=PATIENCE_SECONDS)
        assert not thread.is_alive(), thread.name
