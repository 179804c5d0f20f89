"""Solves of changed specs: one route, a merge patch, and otherwise what every submission gets."""

import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny

URL = "/v1/solves:from-patch"


def asked(live: Live, solve_id: object, patch: object, **headers: str) -> dict[str, object]:
    answer = live.post(URL, {"solve": solve_id, "patch": patch}, headers={"Prefer": "wait=30", **headers})
    assert answer.status_code == 200, answer.text
    assert answer.headers["location"] == f"/v1/solves/{answer.json()['id']}"
    return answer.json()


def test_a_changed_spec_is_the_same_as_that_spec_submitted(live: Live) -> None:
    first = live.solve(tiny(name="from"))
    patched = asked(live, first["id"], {"name": "to", "hardware": {"ranks_per_host": 4}, "solver": {"seed": 3}})
    assert patched["id"] != first["id"]
    whole = live.solve(tiny(name="to", hardware__ranks_per_host=4, solver__seed=3))
    assert whole["id"] == patched["id"]
    plan = live.get(patched["result"]["plan_url"]).json()
    assert (plan["name"], plan["world_size"]) == ("to", 4)


def test_null_takes_a_field_back_to_its_default(live: Live) -> None:
    first = live.solve(tiny(name="reserved", constraints__reserved_hbm_fraction=0.5))
    assert asked(live, first["id"], {"constraints": None})["spec_digest"] == live.solve(TINY)["spec_digest"]


def test_no_change_joins_the_solve_itself(live: Live) -> None:
    first = live.solve(tiny(name="unchanged"))
    assert asked(live, first["id"], {})["id"] == first["id"]
    fresh = live.post(f"{URL}?fresh=true&tag=why=again", {"solve": first["id"], "patch": {}}).json()
    assert fresh["id"] != first["id"]
    assert fresh["tags"] == ["why=again"]


def test_errors_are_of_the_changed_spec(live: Live) -> None:
    first = live.solve(tiny(name="findings"))
    tables = [*TINY["model"]["tables"], {"name": "a", "num_embeddings": 0, "embedding_dim": 8, "pooling_factor": 1.0}]
    patch = {"model": {"tables": tables}, "hardware": {"profil": "x"}}
    problem = assert_problem(live.post(URL, {"solve": first["id"], "patch": patch}), 422, "invalid-problem")
    pointers = {issue["pointer"] for issue in problem["errors"]}
    assert {"/model/tables/2/num_embeddings", "/hardware/profil"} <= pointers


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"solve": "0" * 28}, "/patch"),
        ({"solve": "0" * 28, "patch": [1]}, "/patch"),
        ({"patch": {}}, "/solve"),
        ({"solve": 3, "patch": {}}, "/solve"),
        ({"solve": "0" * 28, "patch": {}, "fresh": True}, "/fresh"),
    ],
)
def test_what_is_no_request_is_refused(live: Live, body: object, pointer: str) -> None:
    problem = assert_problem(live.post(URL, body), 422, "invalid-problem")
    assert [issue["pointer"] for issue in problem["errors"]] == [pointer]


def test_there_has_to_be_such_a_solve(live: Live) -> None:
    assert_problem(live.post(URL, {"solve": "0" * 28, "patch": {}}), 404, "not-found")


def test_a_request_with_a_key_happens_once(live: Live) -> None:
    first = live.solve(tiny(name="keyed-base"))
    body, url = {"solve": first["id"], "patch": {"solver": {"seed": 5}}}, f"{URL}?fresh=true"
    made = [live.post(url, body, headers={"Idempotency-Key": "k"}).json()["id"] for _ in range(2)]
    assert made[0] == made[1]
    body["patch"] = {"solver": {"seed": 6}}
    assert_problem(live.post(url, body, headers={"Idempotency-Key": "k"}), 422, "key-reused")


def test_a_deadline_that_has_passed_is_refused(live: Live) -> None:
    first = live.solve(tiny(name="late"))
    url = f"{URL}?deadline=2020-01-01T00:00:00Z"
    assert_problem(live.post(url, {"solve": first["id"], "patch": {}}), 422, "deadline-passed")
