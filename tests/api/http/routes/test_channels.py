"""Channels: created once, moved from a known version, read by launchers."""

import threading

import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny


@pytest.fixture(scope="module")
def digests(live: Live) -> list[str]:
    specs = [TINY, tiny(name="other", model__batch_size_per_rank=32)]
    return [live.solve(spec)["result"]["plan_digest"] for spec in specs]


def test_the_life_of_a_channel(live: Live, digests: list[str]) -> None:
    url = "/v1/channels/ads/ranker/prod"
    assert_problem(live.get(url), 404, "not-found")
    assert_problem(live.get(f"{url}/plan"), 404, "not-found")
    created = live.put(url, {"plan_digest": digests[0]}, headers={"If-None-Match": "*"})
    assert created.status_code == 201
    assert created.json()["version"] == 1
    etag = created.headers["etag"]
    assert live.get(url).headers["etag"] == etag
    assert live.get(url, headers={"If-None-Match": etag}).status_code == 304
    assert live.get(f"{url}/plan").json()["plan_digest"] == digests[0]

    moved = live.put(url, {"plan_digest": digests[1]}, headers={"If-Match": etag})
    assert (moved.status_code, moved.json()["version"]) == (200, 2)
    plan = live.get(f"{url}/plan")
    assert plan.headers["x-plan-digest"] == plan.json()["plan_digest"] == digests[1]
    assert plan.headers["cache-control"] == "private, no-cache"
    unchanged = live.get(f"{url}/plan", headers={"If-None-Match": plan.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert live.request("HEAD", f"{url}/plan").headers["etag"] == plan.headers["etag"]

    assert_problem(live.put(url, {"plan_digest": digests[0]}), 428, "precondition-required")
    stale = live.put(url, {"plan_digest": digests[0]}, headers={"If-Match": etag})
    assert_problem(stale, 412, "channel-changed")
    assert stale.headers["etag"] == moved.headers["etag"]
    create_again = live.put(url, {"plan_digest": digests[0]}, headers={"If-None-Match": "*"})
    assert_problem(create_again, 412, "channel-changed")


def test_changes_that_make_no_sense(live: Live, digests: list[str]) -> None:
    url = "/v1/channels/none"
    assert_problem(live.put(url, {"plan_digest": digests[0]}, headers={"If-Match": '"v1"'}), 412, "channel-changed")
    assert_problem(live.put(url, {"plan_digest": "sha256:" + "0" * 64}), 404, "not-found")
    assert_problem(live.put(url, {"plan_digest": "latest"}), 422, "invalid-problem")
    assert_problem(live.put(url, {}), 422, "invalid-problem")
    assert_problem(live.get(url), 404, "not-found")


@pytest.mark.parametrize(
    "name",
    [
        "Prod",
        "a b",
        "a//b",
        "a/",
        "%2e%2e",
        "a/%2e%2e/b",
        "a%2f..%2fb",
        "a%00b",
        "/".join("abcdefghi"),
        "a/plan",
        "a/history",
        "history",
        "a:rollback",
        "x" * 65,
        "ü",
    ],
)
def test_names_that_are_not_accepted(live: Live, digests: list[str], name: str) -> None:
    answer = live.put(f"/v1/channels/{name}", {"plan_digest": digests[0]})
    assert answer.status_code in (400, 404, 405), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_racing_promoters_lose_no_update(live: Live, digests: list[str]) -> None:
    url = "/v1/channels/raced"
    live.put(url, {"plan_digest": digests[0]})
    wins = []

    def promote(number: int) -> None:
        for _ in range(4):
            etag = live.get(url).headers["etag"]
            answer = live.put(url, {"plan_digest": digests[number % 2]}, headers={"If-Match": etag})
            assert answer.status_code in (200, 412)
            if answer.status_code == 200:
                wins.append(answer.json()["version"])

    threads = [threading.Thread(target=promote, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Every acknowledged change has its own version, and the last one is what readers see.
    assert sorted(wins) == list(range(2, 2 + len(wins)))
    current = live.get(url).json()
    assert current["version"] == 1 + len(wins)
    assert live.get(f"{url}/plan").headers["x-plan-digest"] == current["plan_digest"]


def test_channels_are_listed_page_by_page(live: Live) -> None:
    digest = live.solve(TINY)["result"]["plan_digest"]
    names = {f"listed/{letter}" for letter in "abc"}
    for name in names:
        live.put(f"/v1/channels/{name}", {"plan_digest": digest})
    seen, url = [], "/v1/channels?page_size=2"
    while url:
        page = live.get(url)
        assert len(page.json()["channels"]) <= 2
        seen += [channel["name"] for channel in page.json()["channels"]]
        url = page.links["next"]["url"] if "next" in page.links else None
    assert seen == sorted(set(seen))
    assert names <= set(seen)
