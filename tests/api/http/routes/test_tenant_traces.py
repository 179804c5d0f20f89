"""What another tenant has leaves no trace in what is asked of the database, nor in how long an answer takes."""

import re
import time
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np
import pytest
from sqlalchemy import event

from tests.support.service.live import Live
from tests.support.service.tenants import LINES, UNKNOWN, WEBHOOK_HOSTS, Line, Tenant, filled
from tests.support.thorough import thorough

_NUM_TIMED = 120
_NUM_SHUFFLES = 2000
#: Of the median: below this a difference is nobody's to find.
_LEAST_SHARE = 0.03
#: Where what happens is caused by a request of ``Both.asked``: it goes with it, from task to thread.
_ASKED: ContextVar[bool] = ContextVar("asked", default=False)


class Both:
    """A service with two tenants, of which one asks for what the other has, and the statements that it causes."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.ours, self.theirs = Tenant(live, "ours", rows=2000), Tenant(live, "theirs", rows=3000)
        self.ours.publish()
        self.statements: list[str] = []
        engines = live.app.state.services.store.engines
        for engine in (engines.readers, engines.writer.engine):
            event.listen(engine, "after_cursor_execute", self._on_statement)

    def _on_statement(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        # What the service asks by itself meanwhile, as it looks for work or for what has ended, is nobody's request.
        if _ASKED.get():
            self.statements.append(re.sub(r"\s+", " ", statement))

    def asked(self, method: str, url: str, body: object) -> list[str]:
        """Send a request as the other tenant; return the statements of the database that it took."""
        self.statements = []
        token = _ASKED.set(True)
        try:
            self.theirs.send(method, url, **({} if body is None else {"json": body}))
        finally:
            _ASKED.reset(token)
        return [one for one in self.statements if "BEGIN" not in one]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with Live.of(tmp_path_factory.mktemp("tenants"), auth="keys", webhook_hosts=WEBHOOK_HOSTS) as live:
        yield Both(live)


def requests_of(both: Both, line: Line) -> Iterator[tuple[tuple[str, object], tuple[str, object]]]:
    """Each request of a line with what the other tenant has, and with what nobody has."""
    for url in line.urls:
        for body in line.bodies:
            yield tuple(  # type: ignore[misc]
                (filled(url, ids, both.theirs), None if body is None else filled(body, ids, both.theirs))
                for ids in (both.ours.ids, UNKNOWN)
            )


HIDDEN = [operation for operation, line in LINES.items() if line.kind == "hidden" and "deliveries" not in operation]


@thorough
@pytest.mark.parametrize("operation", HIDDEN)
def test_the_database_is_asked_the_same(both: Both, operation: str) -> None:
    method = operation.partition(" ")[0]
    for foreign, unknown in requests_of(both, LINES[operation]):
        for request in (foreign, unknown):  # what is read once and kept, such as keys, is read before
            both.asked(method, *request)
        statements = both.asked(method, *foreign)
        assert statements
        assert statements == both.asked(method, *unknown), foreign[0]


def difference(times: np.ndarray, is_foreign: np.ndarray) -> float:
    return float(abs(np.median(times[is_foreign]) - np.median(times[~is_foreign])))


@pytest.mark.parametrize(
    "name", ["plans/<plan>", "solves/<solve>", "channels/<channel>/plan", "statistics/<statistics>"]
)
def test_an_answer_takes_as_long(both: Both, name: str) -> None:
    """Times of both kinds, in an order that was drawn, differ no more than if the kinds were dealt out by lot."""
    draw = np.random.default_rng(21)
    is_foreign = draw.permutation(np.arange(2 * _NUM_TIMED) % 2 == 0)
    urls = [filled(f"/v1/{name}", ids, both.theirs) for ids in (UNKNOWN, both.ours.ids)]
    times = np.empty(len(is_foreign))
    for number, foreign in enumerate(is_foreign):
        began = time.perf_counter()
        assert both.theirs.send("GET", urls[int(foreign)]).status_code == 404
        times[number] = time.perf_counter() - began
    by_lot = [difference(times, draw.permutation(is_foreign)) for _ in range(_NUM_SHUFFLES)]
    assert difference(times, is_foreign) <= max(1.2 * max(by_lot), _LEAST_SHARE * float(np.median(times)))
