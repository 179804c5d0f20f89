"""Spans of OpenTelemetry, where they are asked for: requests, solves, and the moment at which a plan is published.

Spans have ids, states and templates of routes; never addresses as they were sent, nor anything of specs. What is not
ours to say (where spans are sent, with which headers, how many of them) is said by the variables ``OTEL_*``.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracer, Span, SpanKind, Status, StatusCode, Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.observability.metrics import CALLER_GONE, method_of, route_of
from api.observability.request_id import request_id_of
from api.release import VERSION
from api.settings import Settings
from api.store.solves.records import FAILED, SolveRecord

_NAME = "shardplan"
#: For what has not been sent yet when the process ends; more would look as if it hung.
_FLUSH_SECONDS = 3.0
_PARENT_HEADERS = (b"traceparent", b"tracestate")


#: Messages of exceptions may repeat what was sent.
_QUIET: Any = {"record_exception": False, "set_status_on_exception": False}


class MissingExtra(Exception):
    """Spans are asked for, and what sends them is not installed; the message is for people."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Makes spans, and sends them."""

    tracer: Tracer
    shutdown: Callable[[], None]  # sends what is left, for a moment at most


#: Spans that are never exported.
NO_TRACING = Tracing(NoOpTracer(), shutdown=lambda: None)


def tracing_of(settings: Settings) -> Tracing:
    """Return what the settings ask for. Raises ``MissingExtra``."""
    if settings.traces == "none":
        return NO_TRACING
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise MissingExtra(
            "SHARDPLAN_TRACES=otlp needs packages that are not installed: pip install 'shardplan[otel]'"
        ) from None
    ours = Resource({"service.name": _NAME, "service.version": VERSION})
    provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))

    def shutdown() -> None:
        thread = threading.Thread(target=provider.shutdown, name="last-spans", daemon=True)
        thread.start()
        thread.join(_FLUSH_SECONDS)

    return Tracing(provider.get_tracer(_NAME, VERSION), shutdown)


def solve_span(tracer: Tracer, solve: SolveRecord) -> AbstractContextManager[Span]:
    """Make a span of an attempt at a solve, in a trace of its own."""
    attributes: dict[str, str | int] = {
        "shardplan.solve_id": solve.id,
        "shardplan.attempt": solve.attempts,
        "shardplan.executor_id": solve.executor_id or "",
    }
    return tracer.start_as_current_span("solve", context=Context(), attributes=attributes, **_QUIET)


def publish_span(tracer: Tracer, solve_id: str, plan_digest: str | None) -> AbstractContextManager[Span]:
    """Make a span of the transaction that ends a solve, and publishes its plan where it has one."""
    digest = {} if plan_digest is None else {"shardplan.plan_digest": plan_digest}
    return tracer.start_as_current_span("publish", attributes={"shardplan.solve_id": solve_id, **digest}, **_QUIET)


def set_end(state: str, reason: str) -> None:
    """Say in the span around how a solve ended."""
    span = get_current_span()
    span.set_attribute("shardplan.state", state)
    span.set_attribute("shardplan.reason", reason)
    if state == FAILED:
        span.set_status(Status(StatusCode.ERROR))


class TracedRequestsMiddleware:
    """Makes a span of every request, below that of the caller where it sends a ``traceparent``."""

    def __init__(self, app: ASGIApp, *, tracer: Tracer) -> None:
        self._app, self._tracer, self._propagator = app, tracer, TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        carrier = {
            name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _PARENT_HEADERS
        }
        status = CALLER_GONE

        async def watching_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._tracer.start_as_current_span(
            "request",
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER,
            **_QUIET,
        ) as span:
            scope.setdefault("state", {})["trace_id"] = f"{span.get_span_context().trace_id:032x}"
            try:
                await self._app(scope, receive, watching_send)
            except BaseException:
                status = 500 if status == CALLER_GONE else status
                raise
            finally:
                method, route = method_of(scope), route_of(scope)
                span.update_name(f"{method} {route}")
                span.set_attribute("http.request.method", method)
                span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", status)
                span.set_attribute("shardplan.request_id", request_id_of(scope))
                if status >= 500:
                    span.set_status(Status(StatusCode.ERROR))
