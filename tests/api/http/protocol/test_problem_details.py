"""Every error has the one shape, whatever goes wrong, and says nothing of the input."""

import anyio
import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from api.http.protocol.problem_details import add_error_handlers
from api.observability.request_id import RequestIdMiddleware
from cost_models.errors import CostModelError, MissingHardwareNumber, UnsupportedWork
from tests.api.specs.input.test_json import BROKEN, NOT_JSON
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, raw, tiny

JSON = {"Content-Type": "application/json"}


def test_addresses_and_methods_that_do_not_exist(live: Live) -> None:
    assert_problem(live.get("/secrets"), 404, "not-found")
    assert_problem(live.get("/v1/secrets?x=<script>"), 404, "not-found")
    wrong = live.request("DELETE", "/v1/solves")
    assert_problem(wrong, 405, "method-not-allowed")
    assert wrong.headers["allow"]


@pytest.mark.parametrize("url", ["/v1/solves", "/v1/specs:validate", "/v1/plans:evaluate", "/v1/plans:certify"])
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_bytes_that_are_not_plain_json(live: Live, url: str, body: bytes) -> None:
    answer = live.request("POST", url, content=body, headers=JSON)
    assert assert_problem(answer, 422, "invalid-problem")["num_errors"] == 1


@pytest.mark.parametrize(("body", "where"), BROKEN.values(), ids=BROKEN.keys())
def test_hostile_specs(live: Live, body: bytes, where: str) -> None:
    before = live.num_solves()
    answer = live.request("POST", "/v1/solves", content=body, headers=JSON)
    problem = assert_problem(answer, 422, "invalid-problem")
    assert where in [error["pointer"] for error in problem["errors"]]
    for secret in (b"<script>", b"\\u202e", b"Set-Cookie", b"etc", b"a" * 81, b"5" * 81):
        assert secret not in answer.content
    assert live.num_solves() == before


def test_a_hundred_thousand_errors_fit_into_a_small_answer(live: Live) -> None:
    spec = tiny(model__tables=[{"name": 1, "x": 1, "y": 2}] * 19_999)
    answer = live.request("POST", "/v1/solves", content=raw(spec), headers=JSON)
    problem = assert_problem(answer, 422, "invalid-problem")
    assert problem["num_errors"] == 99_995
    assert len(problem["errors"]) == 50


def test_request_ids_are_taken_when_harmless_and_made_otherwise(live: Live) -> None:
    assert live.get("/livez", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    for hostile in ("a b", "x" * 65, "<script>", ""):
        made = live.get("/livez", headers={"X-Request-Id": hostile}).headers["x-request-id"]
        assert made
        assert made != hostile


class FailingStore:
    """A store of which every method fails in one way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> object:
        def fail(*_: object, **__: object) -> None:
            raise self._error

        return fail


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OperationalError("INSERT", {}, Exception("database or disk is full")), 503, "storage-unavailable"),
        (InternalError("INSERT", {}, Exception("in a read-only transaction")), 503, "storage-unavailable"),
        (InterfaceError("SELECT", {}, Exception("the connection is closed")), 503, "storage-unavailable"),
        (PoolTimeout("QueuePool limit reached"), 503, "storage-unavailable"),
        (RuntimeError("a secret"), 500, "internal"),
    ],
)
def test_a_store_that_fails_is_a_problem(live: Live, error: Exception, status: int, code: str) -> None:
    services = live.app.state.services
    object.__setattr__(services.solves, "_store", FailingStore(error))
    try:
        answer = live.post("/v1/solves", TINY)
    finally:
        object.__setattr__(services.solves, "_store", services.store)
    problem = assert_problem(answer, status, code)
    assert problem["retryable"] is (status == 503)
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    "address",
    [
        "/v1/solves/%00",
        "/v1/channels/a%00b/plan",
        "/ui/solves/%00",
        "/v1/channels/a%0A",
        "/v1/channels/a/prod%0a/plan",
        "/v1/plans/sha256:" + "0" * 64 + "%0A",
        "/livez%0A",
        "/v1/channels/a%1b",
        "/v1/channels/a%E2%80%AE",
    ],
)
def test_nothing_is_at_an_address_that_cannot_be_printed(live: Live, address: str) -> None:
    assert_problem(live.get(address), 404, "not-found")


@pytest.mark.parametrize("address", ["/v1/plans?name=a%00b", "/v1/audit?subject=%00"])
def test_a_query_with_nul_is_refused(live: Live, address: str) -> None:
    assert_problem(live.get(address), 400, "invalid-parameter")


@pytest.mark.parametrize(
    ("error", "code", "where"),
    [
        (
            MissingHardwareNumber("custom", "hbm_bytes_per_second", "gathers"),
            "missing-hardware-number",
            "/hardware/overrides/hbm_bytes_per_second",
        ),
        (UnsupportedWork("roofline", "kernel fused_uvm"), "unsupported-work", "/cost_model"),
    ],
)
def test_what_a_cost_model_refuses_is_never_a_500(error: CostModelError, code: str, where: str) -> None:
    app = FastAPI()
    add_error_handlers(app)
    app.add_middleware(RequestIdMiddleware)

    @app.get("/priced")
    async def priced() -> None:
        raise error

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/priced")

    (issue,) = assert_problem(anyio.run(ask), 422, "unsupported")["errors"]
    assert (issue["code"], issue["pointer"]) == (code, where)
    assert issue["hint"]


@pytest.mark.parametrize("url", ["/v1/solves", "/v1/specs:validate"])
def test_hardware_that_lacks_a_number_is_refused_at_the_door(live: Live, url: str) -> None:
    hardware = {"profile": "custom", "ranks_per_host": 2, "overrides": {"hbm_bytes": 8e10}}
    problem = assert_problem(live.post(url, tiny(hardware=hardware)), 422, "invalid-problem")
    assert {error["pointer"] for error in problem["errors"]} == {
        "/hardware/overrides/hbm_bytes_per_second",
        "/hardware/overrides/intra_host_bytes_per_second",
    }
