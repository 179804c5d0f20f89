"""Keys of users, and the audit trail."""

from dataclasses import replace

import pytest

from api.store.access.audit import ACTIVATE, CREATE_KEY, PROMOTE, REVOKE_KEY, ROLLBACK, Actor
from api.store.access.keys import ApiKeyRecord
from api.store.database import Database, TenantStore
from api.store.models.activations import ActivationConflict
from api.store.plans.channels import VersionConflict
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.race import race
from tests.support.contracts.store.values import DIGEST, OTHER, new_solve, plan

KEY = ApiKeyRecord(
    id="k1", name="launchers", secret_digest="ab" * 32, scopes=["read"], created_at=10.0, expires_at=99.0
)

ANN = Actor(who="ann", request_id="r1")


def published(database: Database) -> None:
    store = database.for_tenant(DEFAULT_TENANT)
    for number, record in enumerate((plan(), plan(OTHER))):
        store.accept(new_solve(number), max_queued=9, reuse=True)
        database.finish(new_solve(number).id, state="succeeded", now=1.0, plan=record)


class AccessContract:
    """Keys and the audit trail of one tenant."""

    def test_a_key_is_preserved_as_it_was_added(self, database: Database, store: TenantStore) -> None:
        assert database.api_key("k1") is None
        second = replace(KEY, id="k0", created_at=11.0, expires_at=None)
        for record in (KEY, second):
            store.add_api_key(record, by=ANN)
        assert database.api_key("k1") == KEY
        assert store.api_keys() == [KEY, second]

    def test_a_key_that_was_revoked_stays_revoked(self, database: Database, store: TenantStore) -> None:
        store.add_api_key(KEY, by=ANN)
        assert store.revoke_api_key("other", by=ANN, now=20.0) is None
        revoked = replace(KEY, revoked_at=20.0)
        assert store.revoke_api_key("k1", by=ANN, now=20.0) == revoked
        assert store.revoke_api_key("k1", by=ANN, now=30.0) == revoked == database.api_key("k1")
        assert [entry.action for entry in store.audit(limit=9, before=None, subject=None)] == [REVOKE_KEY, CREATE_KEY]

    def test_the_last_use_never_goes_back(self, database: Database, store: TenantStore) -> None:
        store.add_api_key(KEY, by=ANN)
        database.record_api_key_uses({"k1": 15.0, "unknown": 15.0})
        database.record_api_key_uses({"k1": 12.0})
        assert database.api_key("k1") == replace(KEY, last_used_at=15.0)

    def test_the_trail_of_keys_has_no_secret(self, store: TenantStore) -> None:
        store.add_api_key(KEY, by=ANN)
        (entry,) = store.audit(limit=9, before=None, subject="keys/k1")
        assert (entry.seq, entry.at, entry.who, entry.request_id) == (1, 10.0, "ann", "r1")
        assert entry.before is None
        assert entry.after == {"name": "launchers", "scopes": ["read"], "expires_at": 99.0, "revoked_at": None}
        assert KEY.secret_digest not in repr(entry)

    def test_the_trail_of_a_channel(self, database: Database, store: TenantStore) -> None:
        published(database)
        store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0)
        store.put_channel("c", plan_digest=OTHER, expected_version=1, now=2.0, by=ANN)
        store.put_channel("c", plan_digest=DIGEST, expected_version=2, now=3.0, by=ANN, action=ROLLBACK)
        with pytest.raises(VersionConflict):
            store.put_channel("c", plan_digest=OTHER, expected_version=2, now=4.0, by=ANN)
        trail = store.audit(limit=9, before=None, subject="channels/c")
        assert [(entry.seq, entry.action, entry.who, entry.request_id) for entry in trail] == [
            (3, ROLLBACK, "ann", "r1"),
            (2, PROMOTE, "ann", "r1"),
            (1, PROMOTE, "local", None),
        ]
        assert trail[2].before is None
        assert trail[1].before == trail[2].after == {"version": 1, "plan_digest": DIGEST}
        assert trail[0].before == trail[1].after == {"version": 2, "plan_digest": OTHER}
        assert trail[0].after == {"version": 3, "plan_digest": DIGEST}

    def test_the_trail_of_an_activation(self, store: TenantStore) -> None:
        versions = [
            store.add_model("m", digest=digest, canonical=b"{}", device="d", figures={}, now=1.0)[0].version
            for digest in (DIGEST, OTHER)
        ]
        for expected, version in enumerate(versions):
            store.activate("p", model_name="m", model_version=version, expected_version=expected, now=2.0, by=ANN)
        with pytest.raises(ActivationConflict):
            store.activate("p", model_name="m", model_version=1, expected_version=0, now=3.0, by=ANN)
        new, old = store.audit(limit=9, before=None, subject="hardware-profiles/p/cost-model")
        assert (new.action, new.who, old.before) == (ACTIVATE, "ann", None)
        assert new.before == old.after == {"version": 1, "cost_model": "m@1", "digest": DIGEST}
        assert new.after == {"version": 2, "cost_model": "m@2", "digest": OTHER}

    def test_pages_of_the_trail(self, store: TenantStore) -> None:
        for number in range(5):
            store.add_api_key(replace(KEY, id=f"k{number}"), by=ANN)
        assert [entry.seq for entry in store.audit(limit=2, before=None, subject=None)] == [5, 4]
        assert [entry.seq for entry in store.audit(limit=9, before=4, subject=None)] == [3, 2, 1]
        assert store.audit(limit=9, before=1, subject="keys/k0") == []

    def test_racing_changes_are_numbered_without_gaps(self, store: TenantStore) -> None:
        race(16, lambda index: store.add_api_key(replace(KEY, id=f"k{index}"), by=ANN))
        trail = store.audit(limit=99, before=None, subject=None)
        assert [entry.seq for entry in trail] == list(range(16, 0, -1))
        assert {entry.subject for entry in trail} == {f"keys/k{index}" for index in range(16)}
