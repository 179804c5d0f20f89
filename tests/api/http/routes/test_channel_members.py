"""Channels with a plan for each of several world sizes: launchers get that of their own."""

from typing import Any

import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny

MAIN, FEWER, OTHER = 4, 2, 6


@pytest.fixture(scope="module")
def plans(live: Live) -> dict[int, str]:
    """Plans by their number of ranks."""
    return {
        size: live.solve(tiny(name=f"of {size}", hardware__ranks_per_host=size))["result"]["plan_digest"]
        for size in (MAIN, FEWER, OTHER)
    }


def promoted(live: Live, name: str, plans: dict[int, str], *sizes: int) -> Any:
    body = {"plan_digest": plans[sizes[0]], "plan_digests": {str(size): plans[size] for size in sizes}}
    answer = live.put(f"/v1/channels/{name}", body)
    assert answer.status_code == 201, answer.text
    return answer


def test_a_launcher_gets_the_plan_of_its_size(live: Live, plans: dict[int, str]) -> None:
    created = promoted(live, "sizes/get", plans, MAIN, FEWER)
    assert created.json()["plan_digests"] == {"2": plans[FEWER], "4": plans[MAIN]}
    url = "/v1/channels/sizes/get/plan"
    for query, size in (
        ("", MAIN),
        ("?world_size=4", MAIN),
        ("?world_size=2", FEWER),
        ("?world_size=2&form=compact", FEWER),
    ):
        for _ in range(2):  # from the store, and from memory
            answer = live.get(url + query)
            assert answer.status_code == 200
            assert answer.headers["x-plan-digest"] == answer.json()["plan_digest"] == plans[size]
            assert answer.json()["world_size"] == size
    assert live.get(f"{url}?rank=1&world_size=2").json()["plan_digest"] == plans[FEWER]
    etags = {size: live.get(f"{url}?world_size={size}").headers["etag"] for size in (MAIN, FEWER)}
    assert etags[MAIN] != etags[FEWER]
    for size, other in ((MAIN, FEWER), (FEWER, MAIN)):
        same = live.get(f"{url}?world_size={size}", headers={"If-None-Match": etags[size]})
        assert (same.status_code, same.content) == (304, b"")
        assert live.get(f"{url}?world_size={size}", headers={"If-None-Match": etags[other]}).status_code == 200


def test_sizes_that_there_are_not_are_refused_with_those_that_there_are(live: Live, plans: dict[int, str]) -> None:
    promoted(live, "sizes/none", plans, MAIN, FEWER)
    for query in ("world_size=3", "form=compact&world_size=3", "rank=0&world_size=3"):
        answer = live.get(f"/v1/channels/sizes/none/plan?{query}")
        assert_problem(answer, 404, "no-such-world-size")
        assert answer.json()["detail"] == "the channel has plans for 2, 4 ranks, and none for 3"
    for wrong in ("0", "-1", "x", "1.5"):
        assert_problem(live.get(f"/v1/channels/sizes/none/plan?world_size={wrong}"), 400, "invalid-parameter")
    assert_problem(live.get(f"/v1/plans/{plans[MAIN]}?world_size=4"), 400, "invalid-parameter")


def test_a_channel_of_one_plan_has_it_for_every_size(live: Live, plans: dict[int, str]) -> None:
    """Whether it is right for the job is the handshake's question."""
    created = live.put("/v1/channels/sizes/one", {"plan_digest": plans[MAIN]})
    assert created.json()["plan_digests"] == {}
    for size in (MAIN, FEWER):
        answer = live.get(f"/v1/channels/sizes/one/plan?world_size={size}")
        assert answer.headers["x-plan-digest"] == plans[MAIN]


def test_the_main_plan_is_one_of_the_members(live: Live, plans: dict[int, str]) -> None:
    body = {"plan_digest": plans[MAIN], "plan_digests": {"2": plans[FEWER]}}
    created = live.put("/v1/channels/sizes/main", body)
    assert created.json()["plan_digests"] == {"2": plans[FEWER], "4": plans[MAIN]}


def test_members_are_plans_of_their_sizes(live: Live, plans: dict[int, str]) -> None:
    url = "/v1/channels/sizes/wrong"
    body = {"plan_digest": plans[MAIN], "plan_digests": {"3": plans[FEWER], "4": plans[OTHER]}}
    refused = live.put(url, body)
    assert_problem(refused, 422, "invalid-problem")
    found = {one["pointer"]: one["message"] for one in refused.json()["errors"]}
    assert found.keys() == {"/plan_digests/3", "/plan_digests/4"}
    assert "2 ranks" in found["/plan_digests/3"]
    unknown = live.put(url, {"plan_digest": plans[MAIN], "plan_digests": {"2": "sha256:" + 64 * "0"}})
    assert_problem(unknown, 404, "not-found")
    bad = live.put(url, {"plan_digest": plans[MAIN], "plan_digests": {"two": plans[FEWER]}})
    assert_problem(bad, 422, "invalid-problem")
    assert_problem(live.get(url), 404, "not-found")


def test_members_are_promoted_and_rolled_back_as_one_version(live: Live, plans: dict[int, str]) -> None:
    name = "sizes/back"
    url = f"/v1/channels/{name}"
    first = promoted(live, name, plans, MAIN, FEWER)
    changed = {"plan_digest": plans[MAIN], "plan_digests": {str(OTHER): plans[OTHER]}}  # the main plan stays
    second = live.put(url, changed, headers={"If-Match": first.headers["etag"]})
    assert (second.status_code, second.json()["version"]) == (200, 2)
    assert live.get(f"{url}/plan?world_size={OTHER}").headers["x-plan-digest"] == plans[OTHER]
    assert live.get(f"{url}/plan?world_size={FEWER}").status_code == 404
    back = live.post(f"{url}:rollback", {}, headers={"If-Match": second.headers["etag"]})
    assert (back.status_code, back.json()["version"]) == (200, 3)
    assert back.json()["plan_digests"] == first.json()["plan_digests"]
    assert live.get(f"{url}/plan?world_size={FEWER}").headers["x-plan-digest"] == plans[FEWER]
    versions = live.get(f"{url}/history").json()["versions"]
    assert [sorted(one["plan_digests"]) for one in versions] == [["2", "4"], ["4", "6"], ["2", "4"]]
    listed = [one for one in live.get("/v1/channels?page_size=500").json()["channels"] if one["name"] == name]
    assert listed[0]["plan_digests"] == first.json()["plan_digests"]
