"""A service whose solves and channels are told to receivers."""

import json
import logging
from pathlib import Path

import pytest

from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.receivers import receiving
from tests.support.service.specs import TINY, tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import wait_until

#: Solvers yield to everybody on a machine that is busy.
PATIENT = {"solver_grace_seconds": 30.0}


def test_without_a_list_there_are_no_webhooks(tmp_path: Path) -> None:
    with Live.of(tmp_path) as live:
        answer = live.post("/v1/webhooks", {"url": "https://hooks.test/", "name": "n"})
    problem = assert_problem(answer, 422, "webhook-refused")
    assert "SHARDPLAN_WEBHOOK_HOSTS" in problem["detail"]


@thorough
def test_the_end_of_a_solve_and_a_promotion_are_reported_and_can_be_reported_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, logger="api"),
        receiving() as receiver,
        Live.of(tmp_path, webhook_hosts=f"http://127.0.0.1:{receiver.port}", **PATIENT) as live,
    ):
        hook = live.post("/v1/webhooks", {"url": receiver.url, "name": "n"}).json()
        solve = live.solve(TINY)
        digest = solve["result"]["plan_digest"]
        live.put("/v1/channels/ads/prod", {"plan_digest": digest})
        documents = [json.loads(message.body) for message in receiver.wait_for(2)]
        by_type = {document["type"]: document["data"] for document in documents}
        assert by_type == {
            "solve.succeeded": {"solve_id": solve["id"], "state": "succeeded", "plan_digest": digest},
            "channel.promoted": {
                "channel": "ads/prod",
                "version": 1,
                "plan_digest": digest,
                "action": "channel.promote",
            },
        }
        address = f"/v1/webhooks/{hook['id']}/deliveries"
        assert wait_until(
            lambda: [one for one in live.get(address).json()["deliveries"] if one["state"] == "delivered"][1:]
        )
        page = live.get(f"{address}?page_size=1")
        assert f"page_token={page.json()['next_page_token']}" in page.headers["link"]
        rest = live.get(f"{address}?page_token={page.json()['next_page_token']}").json()
        (last,), (first,) = page.json()["deliveries"], rest["deliveries"]
        assert {one["event"] for one in (first, last)} == set(by_type)
        assert (first["attempts"], first["status"], first["error"], first["next_attempt_at"]) == (1, 204, None, None)
        again = live.post(f"{address}/{first['id']}:resend")
        assert (again.status_code, again.json()["state"]) == (202, "waiting")
        ids = [message.headers["webhook-id"] for message in receiver.wait_for(3)]
        assert ids.count(first["id"]) == 2
        secret = live.app.state.services.store.webhook(hook["id"]).secret
        assert hook["secret"] == f"whsec_{secret}"
        stated = " ".join(record.getMessage() for record in caplog.records if record.name.startswith("api"))
        assert stated
        assert secret not in stated
        assert "team=ads" not in stated


@thorough
def test_solves_that_are_cancelled_and_that_fail_are_reported(tmp_path: Path) -> None:
    leave_in(tmp_path)
    with (
        receiving() as receiver,
        Live.of(
            tmp_path,
            plan=planners.hang,
            solver_grace_seconds=0.2,
            webhook_hosts=f"http://127.0.0.1:{receiver.port}",
        ) as live,
    ):
        live.post("/v1/webhooks", {"url": receiver.url, "name": "n"})
        failing = live.post("/v1/solves", tiny(solver__time_limit_seconds=1)).json()["id"]
        waiting = live.post("/v1/solves", tiny(name="second", solver__time_limit_seconds=60)).json()["id"]
        live.post(f"/v1/solves/{waiting}:cancel")
        data = {json.loads(one.body)["type"]: json.loads(one.body)["data"] for one in receiver.wait_for(2)}
    assert data == {
        "solve.cancelled": {"solve_id": waiting, "state": "cancelled", "plan_digest": None},
        "solve.failed": {"solve_id": failing, "state": "failed", "plan_digest": None},
    }


def test_a_receiver_that_is_down_or_slow_changes_nothing_for_solves(tmp_path: Path) -> None:
    with receiving() as down:
        pass
    with receiving(slowness_seconds=9.0) as slow:
        hosts = f"http://127.0.0.1:{down.port}, http://127.0.0.1:{slow.port}"
        with Live.of(tmp_path, webhook_hosts=hosts, **PATIENT) as live:
            for one in (down, slow):
                assert live.post("/v1/webhooks", {"url": one.url, "name": "n"}).status_code == 201
            for number in range(3):
                solve = live.solve(tiny(name=f"n{number}"))
                assert solve["state"] == "succeeded", solve["error"]
                assert live.get("/readyz").status_code == 200
            text = wait_until(lambda: "shardplan_webhook_queue_depth 6.0" in live.get("/metrics").text)
            assert text
            assert 'shardplan_webhooks{state="active"} 2.0' in live.get("/metrics").text


@thorough
def test_a_disabled_webhook_says_so_and_is_enabled_again(tmp_path: Path) -> None:
    status = [410]
    with (
        receiving(answer=lambda _: (status[0], {})) as receiver,
        Live.of(tmp_path, webhook_hosts=f"http://127.0.0.1:{receiver.port}", **PATIENT) as live,
    ):
        hook = live.post("/v1/webhooks", {"url": receiver.url, "name": "n"}).json()
        address = f"/v1/webhooks/{hook['id']}"
        live.solve(TINY)
        wait_until(lambda: live.get(address).json()["state"] == "disabled")
        assert live.get(address).json()["disabled_reason"] == "gone"
        live.solve(tiny(name="unheard"))
        assert len(live.get(f"{address}/deliveries").json()["deliveries"]) == 1
        status[0] = 200
        assert live.post(f"{address}:enable").json()["state"] == "active"
        solve = live.solve(tiny(name="heard"))
        assert solve["id"] in receiver.wait_for(2)[1].body.decode()
        assert [entry.action for entry in live.app.state.services.store.audit(limit=9, before=None, subject=None)] == [
            "webhook.enable",
            "webhook.create",
        ]
