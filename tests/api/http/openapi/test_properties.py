"""Requests made up from the OpenAPI document: never a 500, every answer as documented, no refusal long or telling."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from tests.support.paths import ROOT
from tests.support.service.server import Server
from tests.support.thorough import THOROUGH

OPERATIONS = [
    (method, path)
    for path, item in json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].items()
    for method in item
]
#: Requests made up for each operation.
_EXAMPLES = 300 if THOROUGH else 3
_MOST_REFUSAL_BYTES = 65_536


def refusals_are_short_and_report_nothing(
    _context: schemathesis.CheckContext, response: schemathesis.Response, _case: schemathesis.Case
) -> bool | None:
    """No refusal is over 64 KB, or has code, paths or statements of the server in it."""
    if response.status_code >= 400:
        assert len(response.content) <= _MOST_REFUSAL_BYTES
        for reporting in (b"Traceback", b'File "', b"site-packages", b"sqlalchemy", b"SELECT ", b"0x7f"):
            assert reporting not in response.content, reporting
    return None


CHECKS = [
    not_a_server_error,
    content_type_conformance,
    status_code_conformance,
    refusals_are_short_and_report_nothing,
]


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(root, tmp_path_factory.mktemp("data")).wait_until_ready()
    yield server
    server.stop()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_made_up_requests(server: Server, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")

    @given(case=schema[path][method].as_strategy())
    @settings(max_examples=_EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    check()
