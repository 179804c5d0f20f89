"""The history of channels: a line that rollbacks lengthen, whoever races."""

import pytest

from tests.support.contracts.race import race
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny
from tests.support.thorough import thorough


@pytest.fixture(scope="module")
def digests(live: Live) -> list[str]:
    specs = [TINY, tiny(name="other", model__batch_size_per_rank=32)]
    return [live.solve(spec)["result"]["plan_digest"] for spec in specs]


def promote(live: Live, name: str, *digests: str) -> str:
    """Point a channel at plans, one after the other; return its last ETag."""
    etag = None
    for digest in digests:
        headers = {} if etag is None else {"If-Match": etag}
        etag = live.put(f"/v1/channels/{name}", {"plan_digest": digest}, headers=headers).headers["etag"]
    return str(etag)


def line(live: Live, name: str) -> list[str]:
    """The plans of a channel, oldest first; its versions must count from 1."""
    versions = live.get(f"/v1/channels/{name}/history?page_size=500").json()["versions"]
    assert [version["version"] for version in versions] == list(range(len(versions), 0, -1))
    return [version["plan_digest"] for version in reversed(versions)]


@thorough
def test_a_rollback_is_a_new_version_of_the_plan_before(live: Live, digests: list[str]) -> None:
    etag = promote(live, "back", digests[0], digests[1])
    back = live.post("/v1/channels/back:rollback", headers={"If-Match": etag})
    assert back.status_code == 200
    assert (back.json()["version"], back.json()["plan_digest"]) == (3, digests[0])
    assert live.get("/v1/channels/back").headers["etag"] == back.headers["etag"] != etag
    assert live.get("/v1/channels/back/plan").headers["x-plan-digest"] == digests[0]
    forth = live.post("/v1/channels/back:rollback", {"version": 2}, headers={"If-Match": back.headers["etag"]})
    assert forth.json()["plan_digest"] == digests[1]  # a rollback can be rolled back
    assert line(live, "back") == [digests[0], digests[1], digests[0], digests[1]]


def test_rollbacks_go_back_one_version_each_time(live: Live, digests: list[str]) -> None:
    first, second = digests
    third = live.solve(tiny(name="third", model__batch_size_per_rank=8))["result"]["plan_digest"]
    assert len({first, second, third}) == 3
    url, etag = "/v1/channels/walk", promote(live, "walk", first, second, third)

    def back(body: object = None) -> tuple[str, int | None]:
        nonlocal etag
        answer = live.post(f"{url}:rollback", body, headers={"If-Match": etag})
        assert answer.status_code == 200, answer.text
        etag = answer.headers["etag"]
        newest = live.get(f"{url}/history?page_size=1").json()["versions"][0]
        assert (newest["action"], newest["who"]) == ("channel.rollback", "local")
        return newest["plan_digest"], newest["restored_version"]

    assert back() == (second, 2)
    assert back() == (first, 1)
    detail = assert_problem(live.post(f"{url}:rollback", headers={"If-Match": etag}), 422, "no-such-version")["detail"]
    assert "version 5, which brought back version 1" in detail
    assert back({"version": 4}) == (second, 2)  # what a rollback had made
    assert back() == (first, 1)
    etag = live.put(url, {"plan_digest": third}, headers={"If-Match": etag}).headers["etag"]
    assert back() == (first, 1)  # what launchers had before the promotion
    assert back({"version": 3}) == (third, 3)
    assert back() == (second, 2)
    assert [version["action"] for version in live.get(f"{url}/history").json()["versions"]][-3:] == [
        "channel.promote"
    ] * 3


def test_a_rollback_to_a_version_by_its_number(live: Live, digests: list[str]) -> None:
    etag = promote(live, "numbered", digests[0], digests[1], digests[1])
    answer = live.post("/v1/channels/numbered:rollback", {"version": 1}, headers={"If-Match": etag})
    assert (answer.json()["version"], answer.json()["plan_digest"]) == (4, digests[0])


def test_a_rollback_goes_to_another_plan(live: Live, digests: list[str]) -> None:
    """However often the one of now was promoted: who rolls back wants to be rid of it."""
    etag = promote(live, "again", digests[0], *[digests[1]] * 103)
    back = live.post("/v1/channels/again:rollback", headers={"If-Match": etag})
    assert (back.json()["version"], back.json()["plan_digest"]) == (105, digests[0])
    etag = promote(live, "same", digests[0], digests[0])
    reported = assert_problem(
        live.post("/v1/channels/same:rollback", headers={"If-Match": etag}), 422, "no-such-version"
    )
    assert "never had another plan" in reported["detail"]


def test_rollbacks_that_cannot_be(live: Live, digests: list[str]) -> None:
    url = "/v1/channels/ads/stuck:rollback"
    assert_problem(live.post(url), 404, "not-found")
    first = promote(live, "ads/stuck", digests[0])
    assert_problem(live.post(url), 428, "precondition-required")
    reported = assert_problem(live.post(url, headers={"If-Match": first}), 422, "no-such-version")
    assert "never had another plan" in reported["detail"]
    reported = assert_problem(live.post(url, {"version": 1}, headers={"If-Match": first}), 422, "no-such-version")
    assert "no version before" in reported["detail"]
    second = live.put("/v1/channels/ads/stuck", {"plan_digest": digests[1]}, headers={"If-Match": first})
    etag = second.headers["etag"]
    assert_problem(live.post(url), 428, "precondition-required")
    stale = live.post(url, headers={"If-Match": first})
    assert_problem(stale, 412, "channel-changed")
    assert stale.headers["etag"] == etag
    for version in (2, 3, 2**31 - 1):
        reported = assert_problem(
            live.post(url, {"version": version}, headers={"If-Match": etag}), 422, "no-such-version"
        )
        assert "1 to 1" in reported["detail"]
    assert_problem(live.post(url, {"version": 0}, headers={"If-Match": etag}), 422, "invalid-problem")
    assert_problem(live.post(url, {"to": 1}, headers={"If-Match": etag}), 422, "invalid-problem")
    assert line(live, "ads/stuck") == digests


def test_history_is_paged_newest_first(live: Live, digests: list[str]) -> None:
    promote(live, "a/long/line", *(digests * 2))
    first = live.get("/v1/channels/a/long/line/history?page_size=3")
    assert [version["version"] for version in first.json()["versions"]] == [4, 3, 2]
    newest = first.json()["versions"][0]
    assert newest == {
        "version": 4,
        "plan_digest": digests[1],
        "plan_digests": {},
        "plan_url": f"/v1/plans/{digests[1]}",
        "updated_at": live.get("/v1/channels/a/long/line").json()["updated_at"],
        "who": "local",
        "action": "channel.promote",
        "restored_version": None,
    }
    rest = live.get(first.headers["link"].partition(">")[0].removeprefix("<"))
    assert [version["version"] for version in rest.json()["versions"]] == [1]
    assert rest.json()["next_page_token"] is None
    again = live.get(str(rest.request.url), headers={"If-None-Match": rest.headers["etag"]})
    assert again.status_code == 304
    assert live.request("HEAD", "/v1/channels/a/long/line/history").status_code == 200
    assert_problem(live.get("/v1/channels/nothing/history"), 404, "not-found")
    assert_problem(live.get("/v1/channels/a/long/line/history?page_token=x"), 400, "invalid-parameter")


@thorough
def test_of_32_racing_changes_none_is_lost(live: Live, digests: list[str]) -> None:
    """Replay: every change that was answered stands in the history as answered, and nothing else does."""
    url = "/v1/channels/raced-32"
    promote(live, "raced-32", digests[0], digests[1])

    def change(index: int) -> tuple[int, str, str]:
        """Promote, or roll back, from a version that was read, until it works; tell what was replaced and made."""
        while True:
            seen = live.get(url)
            headers = {"If-Match": seen.headers["etag"]}
            if index % 2:
                answer = live.post(f"{url}:rollback", headers=headers)
            else:
                answer = live.put(url, {"plan_digest": digests[index // 2 % 2]}, headers=headers)
            if answer.status_code == 200:
                assert answer.json()["version"] == seen.json()["version"] + 1
                return answer.json()["version"], seen.json()["plan_digest"], answer.json()["plan_digest"]
            if answer.json()["code"] == "no-such-version":  # rolled back as often as promoted: a promotion is to come
                continue
            assert_problem(answer, 412, "channel-changed")

    changes = race(32, change)
    errors = [one for one in changes if isinstance(one, BaseException)]
    assert errors == []
    history = line(live, "raced-32")
    assert len(history) == 34
    assert sorted(version for version, _, _ in changes) == list(range(3, 35))
    for version, replaced, made in changes:
        assert history[version - 2 : version] == [replaced, made]
