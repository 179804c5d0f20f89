"""Webhooks and their deliveries."""

import json
import time
from dataclasses import replace

import pytest

from api.store.access.audit import (
    CREATE_WEBHOOK,
    DELETE_WEBHOOK,
    ENABLE_WEBHOOK,
    ROLLBACK,
    Actor,
)
from api.store.database import Database, TenantStore
from api.store.plans.channels import VersionConflict
from api.store.tenants import DEFAULT_TENANT
from api.store.webhooks import records as webhooks
from api.store.webhooks.records import (
    ACTIVE,
    CHANNEL_PROMOTED,
    DELIVERED,
    DISABLED,
    EVENTS,
    FAILED,
    WAITING,
    AttemptEnd,
    DeliveryRecord,
    TooManyWebhooks,
    WebhookRecord,
)
from tests.support.contracts.race import race
from tests.support.contracts.store.values import DIGEST, OTHER, new_solve, plan

HOOK = WebhookRecord(
    id="w1", url="https://hooks.test/token/x", events=list(EVENTS), name="n", secret="c2VjcmV0", created_at=5.0
)

ANN = Actor(who="ann", request_id="r1")

LEASE = 60.0


def end_solve(database: Database, number: int, state: str = "succeeded", *, with_plan: bool = False) -> bool:
    store = database.for_tenant(DEFAULT_TENANT)
    store.accept(new_solve(number, request=f"r{number}"), max_queued=9999, reuse=True)
    return database.finish(new_solve(number).id, state=state, now=7.0 + number, plan=plan() if with_plan else None)


def log_of(store: TenantStore, webhook_id: str = "w1") -> list[DeliveryRecord]:
    return store.deliveries(webhook_id, limit=5000, before=None)


def reported(store: TenantStore, webhook_id: str = "w1") -> list[tuple[str, object]]:
    """Types and data of what a webhook is to be told, oldest first."""
    return [(one.event, json.loads(one.body)["data"]) for one in reversed(log_of(store, webhook_id))]


class WebhookContract:
    """Webhooks of one tenant, and deliveries of all."""

    def test_a_webhook_is_preserved_as_it_was_added_and_its_secret_is_in_no_trail(
        self, database: Database, store: TenantStore
    ) -> None:
        assert (store.webhook("w1"), store.webhooks()) == (None, [])
        second = replace(HOOK, id="w0", created_at=6.0, events=[CHANNEL_PROMOTED])
        for record in (HOOK, second):
            store.add_webhook(record, by=ANN)
        assert store.webhook("w1") == HOOK
        assert store.webhooks() == [HOOK, second]
        assert database.num_webhooks_by_state() == {ACTIVE: 2}
        (entry,) = store.audit(limit=9, before=None, subject="webhooks/w1")
        assert (entry.action, entry.who, entry.before) == (CREATE_WEBHOOK, "ann", None)
        assert entry.after == {"name": "n", "host": "https://hooks.test", "events": list(EVENTS), "state": ACTIVE}
        assert "secret" not in repr(HOOK)

    def test_there_are_only_so_many(self, store: TenantStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("api.store.webhooks.webhooks.MAX_WEBHOOKS", 1)
        store.add_webhook(HOOK, by=ANN)
        with pytest.raises(TooManyWebhooks):
            store.add_webhook(replace(HOOK, id="w2"), by=ANN)
        assert store.webhooks() == [HOOK]

    @pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
    def test_the_end_of_a_solve_is_reported_once(self, database: Database, store: TenantStore, state: str) -> None:
        store.add_webhook(HOOK, by=ANN)
        store.add_webhook(replace(HOOK, id="w2", events=[CHANNEL_PROMOTED]), by=ANN)
        assert end_solve(database, 1, state, with_plan=state == "succeeded")
        assert not database.finish(new_solve(1).id, state=state, now=9.0)
        digest = DIGEST if state == "succeeded" else None
        assert reported(store) == [
            (f"solve.{state}", {"solve_id": new_solve(1).id, "state": state, "plan_digest": digest})
        ]
        assert reported(store, "w2") == []

    def test_a_waiting_solve_that_is_cancelled_is_reported_once(self, store: TenantStore) -> None:
        store.add_webhook(HOOK, by=ANN)
        store.accept(new_solve(1), max_queued=9, reuse=True)
        for _ in range(2):
            store.request_cancel(new_solve(1).id, now=3.0)
        ((event, data),) = reported(store)
        assert (event, data["state"], data["plan_digest"]) == ("solve.cancelled", "cancelled", None)

    def test_a_late_attempt_at_a_solve_reports_nothing(self, database: Database, store: TenantStore) -> None:
        store.add_webhook(HOOK, by=ANN)
        store.accept(new_solve(1), max_queued=9, reuse=True)
        for _ in range(2):
            database.begin(new_solve(1).id, executor_id="e", now=2.0)
        assert not database.finish(new_solve(1).id, state="failed", now=3.0, attempt=1)
        assert reported(store) == []

    def test_a_channel_that_changes_is_reported_and_one_that_does_not_is_not(
        self, database: Database, store: TenantStore
    ) -> None:
        for number, record in enumerate((plan(), plan(OTHER))):
            store.accept(new_solve(number, request=f"r{number}"), max_queued=9, reuse=True)
            database.finish(new_solve(number).id, state="succeeded", now=1.0, plan=record)
        store.add_webhook(HOOK, by=ANN)
        store.put_channel("a/b", plan_digest=DIGEST, expected_version=0, now=2.0)
        store.put_channel("a/b", plan_digest=OTHER, expected_version=1, now=3.0, action=ROLLBACK)
        with pytest.raises(VersionConflict):
            store.put_channel("a/b", plan_digest=DIGEST, expected_version=1, now=4.0)
        data = [body for _, body in reported(store)]
        first = {"channel": "a/b", "version": 1, "plan_digest": DIGEST, "action": "channel.promote"}
        second = {"channel": "a/b", "version": 2, "plan_digest": OTHER, "action": "channel.rollback"}
        assert data == [first, second]

    def test_a_delivery_is_taken_once_until_its_lease_is_over(self, database: Database, store: TenantStore) -> None:
        store.add_webhook(HOOK, by=ANN)
        end_solve(database, 1)
        taken = [one for found in race(6, lambda _: self._take(database)) for one in found]
        (one,) = taken
        assert (one.attempt, one.webhook_id, one.url, one.secret) == (1, "w1", HOOK.url, HOOK.secret)
        assert (one.id, one.body) == (log_of(store)[0].id, log_of(store)[0].body)
        assert self._take(database) == []

    def test_a_lease_that_is_over_makes_another_attempt_and_the_first_is_not_heard(
        self, database: Database, store: TenantStore
    ) -> None:
        store.add_webhook(HOOK, by=ANN)
        end_solve(database, 1)
        (first,) = database.take_deliveries(limit=9, lease_seconds=0.0)
        time.sleep(0.01)
        (second,) = self._take(database)
        assert (second.id, second.attempt) == (first.id, 2)
        ended = AttemptEnd(state=DELIVERED, status=200)
        assert not database.end_attempt(first.id, attempt=1, end=ended, max_failed_in_row=3)
        assert database.end_attempt(first.id, attempt=2, end=ended, max_failed_in_row=3)
        assert not database.end_attempt(first.id, attempt=2, end=ended, max_failed_in_row=3)
        (one,) = log_of(store)
        assert (one.state, one.attempts, one.status, one.error) == (DELIVERED, 2, 200, None)
        assert abs(one.ended_at - time.time()) < 60
        assert (database.num_waiting_deliveries(), self._take(database)) == (0, [])

    def test_what_is_tried_again_waits_until_then(self, database: Database, store: TenantStore) -> None:
        store.add_webhook(HOOK, by=ANN)
        end_solve(database, 1)
        (one,) = self._take(database)
        later = AttemptEnd(state=WAITING, status=503, error="status", retry_seconds=100.0)
        assert database.end_attempt(one.id, attempt=1, end=later, max_failed_in_row=1)
        (preserved,) = log_of(store)
        assert (preserved.state, preserved.status, preserved.error, preserved.ended_at) == (
            WAITING,
            503,
            "status",
            None,
        )
        assert 90 < preserved.due_at - time.time() < 110
        assert self._take(database) == []
        assert store.webhook("w1").state == ACTIVE

    def test_one_of_each_webhook_is_taken_and_none_of_busy_ones(self, database: Database, store: TenantStore) -> None:
        for name in ("w1", "w2", "w3"):
            store.add_webhook(replace(HOOK, id=name), by=ANN)
        for number in range(2):
            end_solve(database, number)
        found = database.take_deliveries(limit=9, lease_seconds=LEASE, busy=["w2"])
        assert sorted(one.webhook_id for one in found) == ["w1", "w3"]
        assert len(database.take_deliveries(limit=1, lease_seconds=LEASE)) == 1

    def test_a_webhook_that_fails_again_and_again_is_disabled_and_reported_nothing_until_enabled(
        self, database: Database, store: TenantStore
    ) -> None:
        store.add_webhook(HOOK, by=ANN)
        for number in range(4):
            end_solve(database, number)
        for ends in (FAILED, DELIVERED, FAILED, FAILED):
            assert store.webhook("w1").state == ACTIVE
            (one,) = self._take(database)
            database.end_attempt(one.id, attempt=1, end=AttemptEnd(state=ends), max_failed_in_row=2)
        hook = store.webhook("w1")
        assert (hook.state, hook.disabled_reason, hook.num_failed_in_row) == (DISABLED, "too-many-failures", 2)
        assert database.num_webhooks_by_state() == {DISABLED: 1}
        end_solve(database, 5)
        assert len(log_of(store)) == 4
        assert store.enable_webhook("w1", by=ANN, now=8.0) == HOOK
        assert store.enable_webhook("w1", by=ANN, now=9.0) == HOOK
        assert store.enable_webhook("other", by=ANN, now=9.0) is None
        trail = store.audit(limit=9, before=None, subject="webhooks/w1")
        assert [entry.action for entry in trail] == [ENABLE_WEBHOOK, CREATE_WEBHOOK]
        end_solve(database, 6)
        assert len(log_of(store)) == 5

    def test_what_waits_when_a_webhook_is_disabled_is_taken_when_it_is_enabled(
        self, database: Database, store: TenantStore
    ) -> None:
        store.add_webhook(HOOK, by=ANN)
        for number in range(2):
            end_solve(database, number)
        (one,) = self._take(database)
        gone = AttemptEnd(state=FAILED, status=410, error="gone", disabled_reason="gone")
        database.end_attempt(one.id, attempt=1, end=gone, max_failed_in_row=9)
        assert store.webhook("w1").disabled_reason == "gone"
        assert self._take(database) == []
        assert database.num_waiting_deliveries() == 1
        store.enable_webhook("w1", by=ANN, now=8.0)
        assert len(self._take(database)) == 1

    def test_a_delivery_that_has_ended_is_sent_again_on_demand_with_the_same_id(
        self, database: Database, store: TenantStore
    ) -> None:
        store.add_webhook(HOOK, by=ANN)
        end_solve(database, 1)
        (one,) = self._take(database)
        assert store.resend("w1", one.id).attempts == 1  # under way: left alone
        database.end_attempt(one.id, attempt=1, end=AttemptEnd(state=DELIVERED, status=200), max_failed_in_row=9)
        again = store.resend("w1", one.id)
        assert (again.id, again.state, again.attempts, again.ended_at) == (one.id, WAITING, 0, None)
        assert [found.id for found in self._take(database)] == [one.id]
        assert store.resend("w1", "other") is None
        assert store.resend("other", one.id) is None

    def test_the_log_is_bounded_and_what_waits_is_dropped_last(
        self, database: Database, store: TenantStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("api.store.webhooks.webhooks.MAX_DELIVERIES", 3)
        store.add_webhook(HOOK, by=ANN)
        for number in range(3):
            end_solve(database, number)
        (one,) = self._take(database)
        database.end_attempt(one.id, attempt=1, end=AttemptEnd(state=DELIVERED), max_failed_in_row=9)
        end_solve(database, 3)
        assert one.id not in [preserved.id for preserved in log_of(store)]
        assert store.webhook("w1").num_dropped == 0
        oldest = log_of(store)[-1].id
        end_solve(database, 4)
        preserved = log_of(store)
        assert (len(preserved), store.webhook("w1").num_dropped) == (3, 1)
        assert oldest not in [found.id for found in preserved]
        assert webhooks.MAX_DELIVERIES == 1000

    def test_pages_of_the_log(self, database: Database, store: TenantStore) -> None:
        store.add_webhook(HOOK, by=ANN)
        for number in range(3):
            end_solve(database, number)
        ids = [one.id for one in log_of(store)]
        assert ids == sorted(ids, reverse=True)
        assert [one.id for one in store.deliveries("w1", limit=2, before=None)] == ids[:2]
        assert [one.id for one in store.deliveries("w1", limit=9, before=ids[1])] == ids[2:]

    def test_a_webhook_goes_with_its_deliveries(self, database: Database, store: TenantStore) -> None:
        store.add_webhook(HOOK, by=ANN)
        end_solve(database, 1)
        (one,) = self._take(database)
        assert store.delete_webhook("w1", by=ANN, now=9.0)
        assert not store.delete_webhook("w1", by=ANN, now=9.0)
        assert (store.webhook("w1"), log_of(store)) == (None, [])
        assert not database.end_attempt(one.id, attempt=1, end=AttemptEnd(state=DELIVERED), max_failed_in_row=9)
        trail = store.audit(limit=9, before=None, subject="webhooks/w1")
        assert [entry.action for entry in trail] == [DELETE_WEBHOOK, CREATE_WEBHOOK]
        assert trail[0].after is None
        assert end_solve(database, 2)

    @staticmethod
    def _take(database: Database) -> list[object]:
        return database.take_deliveries(limit=9, lease_seconds=LEASE)
