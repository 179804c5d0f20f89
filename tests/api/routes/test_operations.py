"""Health, version, and the pages behind problem types."""

from api.problems import PROBLEMS
from tests.api.live import Live
from tests.api.problems import assert_problem


def test_health(live: Live) -> None:
    assert live.get("/livez").json() == {"status": "ok"}
    assert live.get("/readyz").json() == {"status": "ok"}


def test_version(live: Live) -> None:
    document = live.get("/version").json()
    assert document["name"] == "shardplan"
    assert {"python", "ortools", "fastapi"} <= set(document["versions"])


def test_every_problem_type_can_be_looked_up(live: Live) -> None:
    for kind in PROBLEMS.values():
        document = live.get(kind.uri).json()
        assert (document["code"], document["status"]) == (kind.code, kind.status)
        assert document["explanation"]
    assert_problem(live.get("/problems/nothing"), 404, "not-found")
