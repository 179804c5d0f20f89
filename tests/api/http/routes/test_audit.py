"""The audit trail: every change is in it, with who made it and in which request."""

from collections.abc import Iterator

import pytest

from api.store.access.audit import LOCAL
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY

MODEL = "hardware-profiles/cpu-2s-skylake-25g-ps/cost-model"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, dict[str, str], str]]:
    """A service that asks for keys, the header of an administrator, and the id of the key."""
    with Live.of(tmp_path_factory.mktemp("audit"), auth="keys") as live:
        record, text = live.app.state.services.api_keys.create("ann", ["admin"], expires_in_seconds=None, by=LOCAL)
        yield live, {"Authorization": f"Bearer {text}"}, record.id


def trail(live: Live, headers: dict[str, str], query: str = "") -> list[dict[str, object]]:
    return live.get(f"/v1/audit?page_size=500{query}", headers=headers).json()["entries"]


def test_every_change_is_in_the_trail(service: tuple[Live, dict[str, str], str]) -> None:
    live, headers, ann = service
    before = trail(live, headers)
    assert [(entry["action"], entry["who"], entry["request_id"]) for entry in before] == [("key.create", "local", None)]
    solve = live.post("/v1/solves", TINY, headers={**headers, "Prefer": "wait=60"}).json()
    assert len(trail(live, headers)) == 1  # solves are no change of what others rely on
    digest = solve["result"]["plan_digest"]

    def named(name: str, **more: str) -> dict[str, str]:
        return {**headers, "X-Request-Id": name, **more}

    first = live.put("/v1/channels/ads/prod", {"plan_digest": digest}, headers=named("r1"))
    second = live.put(
        "/v1/channels/ads/prod", {"plan_digest": digest}, headers=named("r2", **{"If-Match": first.headers["etag"]})
    )
    back = named("r3", **{"If-Match": second.headers["etag"]})
    assert live.post("/v1/channels/ads/prod:rollback", {"version": 1}, headers=back).status_code == 200
    assert live.put("/v1/channels/ads/prod", {"plan_digest": digest}, headers=named("r4")).status_code == 428
    active = live.put(f"/v1/{MODEL}", {"cost_model": "cpu-epyc@1"}, headers=named("r5"))
    assert active.status_code == 201
    made = live.post("/v1/keys", {"name": "n", "scopes": ["read"]}, headers=named("r6")).json()
    for name in ("r7", "r8"):
        assert live.request("DELETE", f"/v1/keys/{made['id']}", headers=named(name)).status_code == 204
    entries = trail(live, headers)[:-1]
    key = f"keys/{made['id']}"
    assert [(entry["request_id"], entry["action"], entry["subject"], entry["who"]) for entry in entries] == [
        ("r7", "key.revoke", key, ann),
        ("r6", "key.create", key, ann),
        ("r5", "cost-model.activate", MODEL, ann),
        ("r3", "channel.rollback", "channels/ads/prod", ann),
        ("r2", "channel.promote", "channels/ads/prod", ann),
        ("r1", "channel.promote", "channels/ads/prod", ann),
    ]
    assert [entry["seq"] for entry in entries] == [7, 6, 5, 4, 3, 2]
    assert entries[3]["before"] == {"version": 2, "plan_digest": digest}
    assert entries[3]["after"] == {"version": 3, "plan_digest": digest}
    assert entries[2]["before"] is None
    assert entries[2]["after"]["cost_model"] == "cpu-epyc@1"
    assert entries[0]["before"]["revoked_at"] is None
    assert entries[0]["after"]["revoked_at"] is not None
    assert made["key"].rpartition("_")[2] not in str(entries)


def test_the_trail_of_one_subject_page_by_page(service: tuple[Live, dict[str, str], str]) -> None:
    live, headers, _ = service
    for name in ("a", "b", "c"):
        assert live.post("/v1/keys", {"name": name, "scopes": ["read"]}, headers=headers).status_code == 201
    whole = trail(live, headers)
    subject = whole[0]["subject"]
    assert trail(live, headers, f"&subject={subject}") == whole[:1]
    found, address = [], "/v1/audit?page_size=2"
    while address:
        page = live.get(address, headers=headers)
        assert len(page.json()["entries"]) <= 2
        found += page.json()["entries"]
        address = page.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert found == whole


def test_parameters_of_the_trail(service: tuple[Live, dict[str, str], str]) -> None:
    live, headers, _ = service
    for query in ("page_size=0", "page_size=501", "page_token=x", "page_token=0", "subjekt=x"):
        assert_problem(live.get(f"/v1/audit?{query}", headers=headers), 400, "invalid-parameter")
    assert live.get("/v1/audit?subject=nothing", headers=headers).json()["entries"] == []
