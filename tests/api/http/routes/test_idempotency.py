"""Requests with a key happen once, however often, and however much at once, they are sent."""

import signal
from pathlib import Path

import pytest

from api.http.protocol.idempotency import KeysInFlight
from api.services.errors import ApiError
from api.store.solves.idempotency import RequestKey
from tests.support.contracts.race import race
from tests.support.service.live import Live
from tests.support.service.measured import benchmark_rows, model_document
from tests.support.service.problems import assert_problem
from tests.support.service.server import Server
from tests.support.service.specs import TINY, tiny
from tests.support.service.statistics_files import document
from tests.support.thorough import thorough


def keyed(key: str, **more: str) -> dict[str, str]:
    return {"Idempotency-Key": key, **more}


def test_a_request_that_is_sent_again_gets_its_solve_as_it_is_now(live: Live) -> None:
    url, spec = "/v1/solves?fresh=true", tiny(name="keyed")
    first = live.post(url, spec, headers=keyed("a"))
    assert first.status_code == 202
    ended = live.get(f"{first.headers['location']}?wait=30").json()
    again = live.post(url, spec, headers=keyed("a"))
    assert (again.status_code, again.headers["location"]) == (200, first.headers["location"])
    assert again.json() == ended
    assert live.post(url, spec, headers=keyed("b")).json()["id"] != ended["id"]
    assert live.post(url, spec).json()["id"] != ended["id"]


def test_another_request_with_the_key_is_refused_and_makes_nothing(live: Live) -> None:
    live.post("/v1/solves?fresh=true", TINY, headers=keyed("c"))
    before = live.num_solves()
    for url, spec in (("/v1/solves?fresh=true", tiny(name="other")), ("/v1/solves", TINY)):
        assert_problem(live.post(url, spec, headers=keyed("c")), 422, "key-reused")
    assert live.num_solves() == before


def test_a_refused_request_leaves_its_key_free(live: Live) -> None:
    assert_problem(live.post("/v1/solves", {}, headers=keyed("d")), 422, "invalid-problem")
    assert live.post("/v1/solves", TINY, headers=keyed("d")).status_code in (200, 202)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "\xfcber"])
def test_keys_that_are_not_accepted(live: Live, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    assert_problem(live.post("/v1/solves", TINY, headers=headers), 400, "invalid-parameter")


@pytest.mark.parametrize("length", [1, 255])
def test_keys_that_are(live: Live, length: int) -> None:
    assert live.post("/v1/solves", TINY, headers=keyed("~" * length)).status_code in (200, 202)


def test_64_racing_requests_with_one_key_make_one_solve(live: Live) -> None:
    for number in range(3):
        before = live.num_solves()
        spec, headers = tiny(name=f"raced {number}"), keyed(f"raced {number}")

        def submit(index: int, spec: object = spec, headers: dict[str, str] = headers) -> tuple[int, str | None]:
            wanted = spec if index % 8 else TINY  # every eighth is another request with the same key
            answer = live.post("/v1/solves?fresh=true", wanted, headers=headers)
            if answer.status_code == 409:
                assert answer.headers["retry-after"]
                assert_problem(answer, 409, "key-in-flight")
            return answer.status_code, answer.headers.get("location")

        answers = race(64, submit)
        assert {status for status, _ in answers} <= {200, 202, 409, 422}
        assert len({location for status, location in answers if status in (200, 202)}) == 1
        assert live.num_solves() == before + 1


def test_a_key_is_in_flight_until_it_is_stored() -> None:
    keys, key = KeysInFlight("default", set()), RequestKey(scope="s", key="k", fingerprint="f", at=0.0)
    with (
        keys.holding(key),
        keys.holding(None),
        pytest.raises(ApiError, match="Send the request again"),
        keys.holding(key),
    ):
        pass
    with keys.holding(key):
        pass


def test_statistics_take_keys(live: Live) -> None:
    first, other = document("x"), document("y")
    assert live.post("/v1/statistics", first, headers=keyed("s")).status_code == 201
    assert live.post("/v1/statistics", first, headers=keyed("s")).status_code == 200
    assert_problem(live.post("/v1/statistics", other, headers=keyed("s")), 422, "key-reused")


def test_a_fit_with_a_key_is_begun_once(live: Live) -> None:
    digest = live.post("/v1/measurements", {"rows": benchmark_rows()}, headers=keyed("m")).json()["measurements_digest"]
    wanted = {"name": "keyed", "measurements": [digest]}
    first = live.post("/v1/cost-models", wanted, headers=keyed("f"))
    assert first.headers["location"] == "/v1/cost-models/keyed@1"
    live.get("/v1/cost-models/keyed@1?wait=60")
    again = live.post("/v1/cost-models", wanted, headers=keyed("f"))
    assert (again.status_code, again.headers["location"]) == (200, first.headers["location"])
    assert_problem(live.post("/v1/cost-models", {**wanted, "seed": 1}, headers=keyed("f")), 422, "key-reused")
    other = {"rows": benchmark_rows()[:-1]}
    assert_problem(live.post("/v1/measurements", other, headers=keyed("m")), 422, "key-reused")


def test_a_document_of_a_model_takes_a_key(live: Live) -> None:
    uploaded = {"document": model_document("one")}
    assert live.post("/v1/cost-models", uploaded, headers=keyed("u")).status_code == 201
    assert live.post("/v1/cost-models", uploaded, headers=keyed("u")).status_code == 200
    other = {"document": model_document("two")}
    assert_problem(live.post("/v1/cost-models", other, headers=keyed("u")), 422, "key-reused")


@thorough
def test_a_key_outlives_a_killed_server(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    url, headers = "/v1/solves?fresh=true", keyed("kept")
    first = server.client.post(url, json=TINY, headers=headers).headers["location"]
    server.stop(signal.SIGKILL)
    server = Server(root, tmp_path).wait_until_ready()
    try:
        again = server.client.post(url, json=TINY, headers={**headers, "Prefer": "wait=30"})
        assert (again.status_code, again.headers["location"]) == (200, first)
        assert len(server.client.get("/v1/solves").json()["solves"]) == 1
        assert server.client.post(url, json=tiny(name="x"), headers=headers).status_code == 422
    finally:
        server.stop()
