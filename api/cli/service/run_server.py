"""Runs the service on a port: what can go wrong at the start is said in words, and it stops soon."""

import asyncio
import contextlib
import errno
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from api.cli.errors import ServerTrouble
from api.cli.service.process import force_exit_after_timeout, start_errors, tune_gc
from api.execution.processes.solve import PlanFunction, plan_in_full
from api.http.app import create_app
from api.http.middleware.header_limits import bounded_heads
from api.http.services import Services
from api.observability.log_queue import LogQueue
from api.observability.logging import is_json, set_up
from api.observability.request_log import AccessLog
from api.observability.tracing import tracing_of
from api.settings import Settings

#: Time for requests that are being answered when the server is asked to stop.
GRACE_SECONDS = 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: What no other port would mend: an address that this machine does not have, or of a kind that it does not have.
_OF_THE_HOST = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
#: Files and connections that may be open, where the system lets a process have so many.
_OPEN_FILES = 65_536

log = logging.getLogger(__name__)


def serve(settings: Settings, *, plan: PlanFunction = plan_in_full) -> None:
    """Serve until SIGINT or SIGTERM; ``plan`` is as in ``api.http.app.create_app``.

    Raises
    ------
    ServerTrouble
        The data folder, the database, a model of the package or the port cannot be used.
    """
    is_terminal = sys.stderr.isatty()
    with contextlib.closing(LogQueue(sys.stderr)) as lines:
        set_up(settings, lines, is_terminal=is_terminal)
        _allow_connections()
        is_logged = settings.access_log and settings.log_level in ("debug", "info")
        access_log = AccessLog(lines.write, as_json=is_json(settings, is_terminal=is_terminal))
        with start_errors(settings):
            tracing = tracing_of(settings)
        app = create_app(settings, plan=plan, observers=[access_log] if is_logged else [], tracing=tracing)
        config = server_config(app, settings)
        with _handled_signals(), asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            try:
                runner.run(_serve(app, config, settings))
            finally:
                tracing.shutdown()


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return how an app is served."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=bounded_heads(settings.head_patience_seconds, settings.body_patience_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        # The lifespan is entered below and not by uvicorn, which would turn what fails there into a traceback and an
        # exit code of its own.
        lifespan="off",
        timeout_graceful_shutdown=GRACE_SECONDS,
        # uvicorn itself would believe every process of this machine, and a variable of its own.
        proxy_headers=settings.trusted_proxies is not None,
        forwarded_allow_ips=settings.trusted_proxies or "",
    )


async def _serve(app: FastAPI, config: uvicorn.Config, settings: Settings) -> None:
    reason = ""
    async with contextlib.AsyncExitStack() as stack:
        with start_errors(settings):
            await stack.enter_async_context(app.router.lifespan_context(app))
        tune_gc()
        server = _Server(config, app.state.services)
        try:
            await server.serve()
        except (SystemExit, UnicodeError):  # a name that DNS cannot be asked for is no OSError to uvicorn
            reason = _why_not(settings)
    if reason:  # outside of the lifespan, whose group of tasks would wrap what is raised in it
        raise ServerTrouble(f"cannot listen on {settings.host}, port {settings.port}: {reason}")


def _why_not(settings: Settings) -> str:
    """Return why no server can listen there; uvicorn says so in its log alone."""
    try:
        host = settings.host or None  # an empty one is all addresses, as for uvicorn
        kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
        for family, _, _, _, address in socket.getaddrinfo(host, settings.port, type=kind, flags=flags):
            socket.create_server(address, family=family).close()
    except UnicodeError:
        return "no host has a name like this (another host: --host, SHARDPLAN_HOST)"
    except socket.gaierror as error:  # its numbers are none of the system's
        return f"{error.strerror} (another host: --host, SHARDPLAN_HOST)"
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        way_out = "host: --host, SHARDPLAN_HOST" if error.errno in _OF_THE_HOST else "port: --port, SHARDPLAN_PORT"
        return f"{reason} (another {way_out})"
    return "it could not be had a moment ago; start again"


class _Server(uvicorn.Server):
    """Lets those go first who wait for the end of a solve."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where people look."""
        await super().startup(sockets)
        if self.started and not self.should_exit:
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            port = self.servers[0].sockets[0].getsockname()[1]  # the system chooses one where 0 is asked for
            url = f"http://{host}:{port}"
            log.info("pages are at %s/, the console of the REST API is at %s/docs", url, url)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        force_exit_after_timeout()
        self._services.solves.release()
        super().handle_exit(sig, frame)


def _allow_connections() -> None:
    """Take what the system allows: processes mostly begin with 1,024 files, fewer than listeners alone may hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextlib.contextmanager
def _handled_signals() -> Iterator[None]:
    """Outlive the signals that uvicorn raises again once it has stopped: the service must still be closed."""
    before = {number: signal.signal(number, _ignore) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The signal has been answered."""
