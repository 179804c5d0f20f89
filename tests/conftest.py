"""Where the tests find the repository, and the public data next to it."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks.service.local_postgres import NoPostgres, Postgres
from tests.support.longest import longest_first
from tests.support.paths import ROOT, SHARED
from tests.support.service import stand_ins
from tests.support.thorough import THOROUGH

# Processes of tests share the cores: threads of one that wait for each other by spinning keep the others from them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
stand_ins.know_link()
# Jobs that a script starts in the background ignore Ctrl-C, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# How long an example takes says more of the machine than of the code. A change is guarded by the same examples each
# time, so that its tests fail by its own faults alone; ``make thorough`` draws new ones.
settings.register_profile(
    "shardplan", deadline=None, derandomize=not THOROUGH, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shardplan")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest files, and leave out what only ``make thorough`` runs."""
    items[:] = longest_first(items)
    if THOROUGH:
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: a packed file holds the second that packed it, and all workers need equal names."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of example specs."""
    return ROOT / "examples"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Public workloads and golden figures next to the repository; tests skip where they are absent."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared folder with public workloads and golden figures next to the repository")
    return SHARED


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that runs; tests skip where none is installed."""
    try:
        server = Postgres()
    except NoPostgres as error:
        pytest.skip(str(error))
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """Loggers are as they were after each test: a server's log to a stream that is closed by then.

    No test begins with warnings disabled for the whole process, as benchmarks that run in it leave them.
    """
    logging.disable(logging.NOTSET)
    loggers = [logging.getLogger(name) for name in (None, "api", "planner", "cost_models", "uvicorn", "dbos")]
    before = [(one, list(one.handlers), one.level, one.propagate) for one in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate
    logging.getLogger("dbos").filters.clear()
