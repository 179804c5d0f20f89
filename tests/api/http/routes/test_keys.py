"""Keys of a server that asks nobody for one, and what is known of keys after a server has stopped."""

from pathlib import Path

from api.store.access.audit import LOCAL
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.thorough import thorough


@thorough
def test_the_last_use_is_preserved(tmp_path: Path) -> None:
    with Live.of(tmp_path, auth="keys") as live:
        keys = live.app.state.services.api_keys
        texts = [keys.create(name, ["read"], expires_in_seconds=None, by=LOCAL)[1] for name in ("used", "not")]
        assert live.get("/v1/solves", headers={"Authorization": f"Bearer {texts[0]}"}).status_code == 200
    with Live.of(tmp_path) as live:  # a server writes what it remembers when it stops
        used = {key["name"]: key["last_used_at"] for key in live.get("/v1/keys").json()["keys"]}
    assert used["used"] is not None
    assert used["not"] is None


@thorough
def test_a_server_that_asks_no_one_makes_no_keys(tmp_path: Path) -> None:
    with Live.of(tmp_path) as live:
        answer = live.post("/v1/keys", {"name": "n", "scopes": ["admin"]}, headers={"Authorization": "Bearer x"})
        assert "shardplan keys" in assert_problem(answer, 403, "forbidden")["detail"]
        assert_problem(live.request("DELETE", "/v1/keys/x"), 403, "forbidden")
        assert live.get("/v1/keys").json() == {"keys": []}
