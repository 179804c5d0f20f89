"""Runs work for servers on other machines: no HTTP, the same engine and the same database."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from prometheus_client import CollectorRegistry, start_http_server

from api.cli.errors import ServerTrouble
from api.cli.service.process import force_exit_after_timeout, start_errors
from api.execution.host import EngineHost
from api.execution.processes.fit import FitFunction
from api.execution.processes.solve import PlanFunction, plan_in_full
from api.observability.log_queue import LogQueue
from api.observability.logging import set_up
from api.observability.metrics import WorkMetrics, new_registry
from api.observability.tracing import tracing_of
from api.settings import Settings
from api.specs.references.learned_model import fit as fit_model
from api.store.data_directory import exclusive_data_directory
from api.store.database import open_store


def work(settings: Settings, *, plan: PlanFunction = plan_in_full, fit: FitFunction = fit_model) -> None:
    """Run solves and fits until SIGINT or SIGTERM; what runs then is run elsewhere, or here after the next start.

    ``plan`` and ``fit`` are as in ``api.http.app.create_app``.

    Raises
    ------
    ServerTrouble
        The database or the data folder cannot be used.
    """
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        force_exit_after_timeout()
        stopped.set()

    registry = new_registry()
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(contextlib.closing(LogQueue(sys.stderr)))
        set_up(settings, lines, is_terminal=sys.stderr.isatty())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        with start_errors(settings):
            tracing = tracing_of(settings)
            stack.callback(tracing.shutdown)
            stack.enter_context(exclusive_data_directory(settings.data_dir))
            store = stack.enter_context(contextlib.closing(open_store(settings)))
            host = EngineHost(
                store,
                settings,
                plan=plan,
                fit=fit,
                on_end=_ignore,
                on_change=_ignore,
                metrics=WorkMetrics(registry),
                tracer=tracing.tracer,
            )
            stack.enter_context(host.running())
            stack.enter_context(_metrics_served(settings, registry))
        stopped.wait()


@contextlib.contextmanager
def _metrics_served(settings: Settings, registry: CollectorRegistry) -> Iterator[None]:
    """Answer scrapes while the block runs, where a port is set."""
    if settings.worker_metrics_port is None:
        yield
        return
    try:
        server, thread = start_http_server(settings.worker_metrics_port, settings.host, registry)
    except OSError as error:
        where = f"{settings.host}, port {settings.worker_metrics_port}"
        raise ServerTrouble(f"cannot listen on {where}: {error.strerror}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _ignore(_work_id: str) -> None:
    """Servers see in the database what happens here."""
