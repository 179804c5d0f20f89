"""Deliveries: at least once, with patience, one process at a time, and nobody else waits for them."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.observability.metrics import WebhookMetrics, new_registry
from api.services.webhooks.client import CAP_SECONDS, WebhookClient
from api.services.webhooks.delivery_worker import LEASE_SECONDS, NUM_AT_ONCE, DeliveryWorker, Patience
from api.services.webhooks.signature import signed_headers
from api.services.webhooks.targets import HostAllowList
from api.store.access.audit import LOCAL
from api.store.database import Database, TenantStore
from api.store.tenants import DEFAULT_TENANT
from api.store.webhooks.records import ACTIVE, DELIVERED, DISABLED, EVENTS, FAILED, WAITING, WebhookRecord
from tests.support.contracts.store.webhooks import end_solve, log_of
from tests.support.service.background import in_background
from tests.support.service.receivers import Receiver, receiving
from tests.support.waiting import PATIENCE_SECONDS

SECRET = "c2VjcmV0IG9mIHRoZSB0ZXN0"
QUICK = Patience(first_wait_seconds=0.05, growth=1.0)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database.of_file(tmp_path / "db.sqlite")
    yield database
    database.close()


@pytest.fixture
def store(database: Database) -> TenantStore:
    return database.for_tenant(DEFAULT_TENANT)


def add(store: TenantStore, receiver: Receiver, name: str = "w1") -> None:
    record = WebhookRecord(id=name, url=receiver.url, events=EVENTS, name=name, secret=SECRET, created_at=1.0)
    store.add_webhook(record, by=LOCAL)


def delivery_worker(
    database: Database, *receivers: Receiver, patience: Patience = QUICK, **options: object
) -> DeliveryWorker:
    allowed = HostAllowList(" ".join(f"http://127.0.0.1:{one.port}" for one in receivers))
    sender = WebhookClient(allowed, cap_seconds=options.pop("cap_seconds", 5.0))
    metrics = options.pop("metrics", None) or WebhookMetrics(new_registry())
    return DeliveryWorker(database, sender, metrics, patience=patience, poll_seconds=0.02, **options)


async def until(condition: object, *couriers: DeliveryWorker, seconds: float = PATIENCE_SECONDS) -> None:
    """Let couriers run until something is so."""
    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:

        async def run(one: DeliveryWorker) -> None:
            async with in_background(one.run):
                while not condition():
                    await asyncio.sleep(0.01)

        for one in couriers:
            group.create_task(run(one))


def test_a_message_reports_ids_state_and_digest_and_is_signed(database: Database, store: TenantStore) -> None:
    registry = new_registry()

    def counted(state: str) -> float | None:
        return registry.get_sample_value("shardplan_webhook_attempt_seconds_count", {"state": state})

    with receiving() as receiver:
        add(store, receiver)
        end_solve(database, 1, with_plan=True)
        one = delivery_worker(database, receiver, metrics=WebhookMetrics(registry))
        asyncio.run(until(lambda: counted("delivered") == 1, one))  # what comes last
        (message,) = receiver.messages
    document = json.loads(message.body)
    assert set(document) == {"type", "timestamp", "data"}
    assert document["type"] == "solve.succeeded"
    assert document["timestamp"] == "1970-01-01T00:00:08+00:00"
    digest = "sha256:" + "1" * 64
    assert document["data"] == {"solve_id": f"{1:012x}", "state": "succeeded", "plan_digest": digest}
    stamp = int(message.headers["webhook-timestamp"])
    assert abs(stamp - time.time()) < 30
    expected = signed_headers(SECRET, log_of(store)[0].id, message.body, timestamp=stamp)
    assert {name: message.headers[name] for name in expected} == expected
    assert message.headers["content-type"] == "application/json"
    assert log_of(store)[0].state == DELIVERED
    assert counted("failed") == 0


def test_a_receiver_that_was_down_gets_it_later_under_the_same_id(database: Database, store: TenantStore) -> None:
    with receiving() as receiver:
        pass
    add(store, receiver)
    end_solve(database, 1)
    asyncio.run(until(lambda: log_of(store)[0].attempts >= 3, delivery_worker(database, receiver, lease_seconds=0.2)))
    (waits,) = log_of(store)
    assert (waits.state, waits.error, waits.status) == (WAITING, "connection", None)
    with receiving(port=receiver.port, answer=lambda number: (503 if number == 1 else 200, {})) as back:
        asyncio.run(
            until(lambda: log_of(store)[0].state == DELIVERED, delivery_worker(database, receiver, lease_seconds=0.2))
        )
        assert {message.headers["webhook-id"] for message in back.messages} == {waits.id}
        assert {message.body for message in back.messages} == {waits.body.encode()}
    assert log_of(store)[0].attempts >= 5
    assert store.webhook("w1").num_failed_in_row == 0


def test_what_a_dead_process_had_taken_is_sent_when_the_lease_is_over(database: Database, store: TenantStore) -> None:
    """It may have arrived: the receiver gets it twice, under one id."""
    with receiving() as receiver:
        add(store, receiver)
        end_solve(database, 1)
        (taken,) = database.take_deliveries(limit=1, lease_seconds=0.3)
        asyncio.run(until(lambda: log_of(store)[0].state == DELIVERED, delivery_worker(database, receiver)))
        assert [message.headers["webhook-id"] for message in receiver.messages] == [taken.id]
    assert log_of(store)[0].attempts == 2
    assert LEASE_SECONDS > CAP_SECONDS


def test_each_delivery_is_sent_by_one_of_many_processes(database: Database, store: TenantStore) -> None:
    with receiving() as receiver:
        add(store, receiver)
        for number in range(12):
            end_solve(database, number)
        couriers = [delivery_worker(database, receiver) for _ in range(3)]
        asyncio.run(until(lambda: database.num_waiting_deliveries() == 0, *couriers))
        ids = [message.headers["webhook-id"] for message in receiver.messages]
    assert sorted(ids) == sorted(one.id for one in log_of(store))


def test_a_slow_receiver_keeps_no_other_one_waiting(database: Database, store: TenantStore) -> None:
    with receiving(slowness_seconds=1.0) as slow, receiving() as quick:
        add(store, slow, "slow")
        add(store, quick, "quick")
        for number in range(20):
            end_solve(database, number)
        began = time.monotonic()
        one = delivery_worker(database, slow, quick)
        asyncio.run(until(lambda: all(item.state == DELIVERED for item in log_of(store, "quick")), one))
        # One message at a time: 20 of a second each would be 20 under way at once, or a crowd in the end.
        assert len(slow.messages) <= 1 + time.monotonic() - began
    assert NUM_AT_ONCE == 8


def test_a_delivery_is_given_up_in_the_end_and_then_the_webhook(
    database: Database, store: TenantStore, caplog: pytest.LogCaptureFixture
) -> None:
    patience = Patience(attempts=2, first_wait_seconds=0.01, growth=1.0, max_failed_in_row=2)
    with receiving(answer=lambda _: (500, {})) as receiver, caplog.at_level(logging.WARNING):
        add(store, receiver)
        for number in range(3):
            end_solve(database, number)
        one = delivery_worker(database, receiver, patience=patience)
        asyncio.run(until(lambda: "is disabled" in caplog.text, one))
        # Two of each of two deliveries; the third may have been tried once between them.
        assert 4 <= len(receiver.messages) <= 5
    hook = store.webhook("w1")
    assert (hook.state, hook.disabled_reason, hook.num_failed_in_row) == (DISABLED, "too-many-failures", 2)
    assert sorted(item.state for item in log_of(store)) == [FAILED, FAILED, WAITING]
    assert {(item.status, item.error) for item in log_of(store) if item.state == FAILED} == {(500, "status")}
    for reported in (SECRET, receiver.url, "team=ads"):
        assert reported not in caplog.text


def test_a_receiver_that_says_it_is_gone_is_reported_nothing_more(database: Database, store: TenantStore) -> None:
    with receiving(answer=lambda _: (410, {})) as receiver:
        add(store, receiver)
        for number in range(2):
            end_solve(database, number)
        asyncio.run(until(lambda: store.webhook("w1").state == DISABLED, delivery_worker(database, receiver)))
        assert len(receiver.messages) == 1
    assert store.webhook("w1").disabled_reason == "gone"


def test_a_host_that_is_listed_no_more_gets_nothing(database: Database, store: TenantStore) -> None:
    with receiving() as receiver:
        add(store, receiver)
        end_solve(database, 1)
        asyncio.run(until(lambda: log_of(store)[0].error is not None, delivery_worker(database)))
        assert (log_of(store)[0].state, log_of(store)[0].error) == (WAITING, "refused-target")
        assert receiver.messages == []


def test_a_store_that_fails_for_a_while_delays_and_loses_nothing(
    database: Database, store: TenantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.exc import OperationalError

    failures = ["take_deliveries", "end_attempt"]
    for name in list(failures):
        original = getattr(database, name)

        def fail_once(*arguments: object, _name: str = name, _original: object = original, **options: object) -> object:
            if _name in failures:
                failures.remove(_name)
                raise OperationalError("select", {}, Exception("disk I/O error"))
            return _original(*arguments, **options)

        monkeypatch.setattr(database, name, fail_once)
    with receiving() as receiver:
        add(store, receiver)
        end_solve(database, 1)
        one = delivery_worker(database, receiver, lease_seconds=0.2)
        asyncio.run(until(lambda: log_of(store)[0].state == DELIVERED, one))
        # It arrived before it could be written down, and so twice.
        assert len({message.headers["webhook-id"] for message in receiver.messages}) == 1
        assert len(receiver.messages) == 2
    assert failures == []
    assert store.webhook("w1").state == ACTIVE


def test_no_one_says_that_a_delivery_was_given_up_that_another_process_goes_on_with(
    database: Database, store: TenantStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry, original, others = new_registry(), database.end_attempt, []

    def end_late(delivery_id: str, **options: object) -> bool:
        """Too late: the lease was over, and another process has taken it."""
        if not others:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not (taken := database.take_deliveries(limit=1, lease_seconds=60)):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            others.extend(taken)
        return original(delivery_id, **options)

    monkeypatch.setattr(database, "end_attempt", end_late)
    with receiving(answer=lambda _: (500, {})) as receiver, caplog.at_level(logging.INFO):
        add(store, receiver)
        end_solve(database, 1)
        one = delivery_worker(
            database,
            receiver,
            metrics=WebhookMetrics(registry),
            patience=Patience(attempts=1),
            lease_seconds=0.1,
        )
        asyncio.run(until(lambda: "not the last one" in caplog.text, one))
    assert [(one.state, one.attempts) for one in log_of(store)] == [(WAITING, 2)]
    assert "given up" not in caplog.text
    assert registry.get_sample_value("shardplan_webhook_attempt_seconds_count", {"state": FAILED}) == 0


def test_the_waits_grow_and_are_spread_and_last_about_a_day() -> None:
    patience = Patience()
    waits = [patience.wait_seconds(attempt, 0.5) for attempt in range(1, patience.attempts)]
    assert waits[:4] == [5.0, 15.0, 45.0, 135.0]
    assert max(waits) == 6 * 3600.0
    assert 22 * 3600 < sum(waits) < 23 * 3600
    assert (patience.wait_seconds(1, 0.0), patience.wait_seconds(1, 1.0)) == (3.75, 6.25)
    assert patience.max_failed_in_row == 3
