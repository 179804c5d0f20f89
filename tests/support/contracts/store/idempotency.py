"""Keys of requests."""

from dataclasses import replace

import pytest

from api.store.database import TenantStore
from api.store.models.measurements import MeasurementsRecord
from api.store.solves.idempotency import RETENTION_SECONDS, KeyReused, RequestKey
from api.store.solves.records import QueueFull
from tests.support.contracts.race import race
from tests.support.contracts.store.values import DIGEST, new_solve

KEY = RequestKey(scope="/v1/solves", key="k", fingerprint="f", at=1000.0)

OTHER = replace(KEY, fingerprint="g")


class RequestKeyContract:
    """A request that is sent twice happens once."""

    def accept_keyed(
        self, store: TenantStore, number: int, key: RequestKey = KEY, **options: object
    ) -> tuple[str, bool]:
        options = {"max_queued": 100, "reuse": False, **options}
        record, created = store.accept(new_solve(number), key=key, **options)
        return record.id, created

    def test_a_key_gets_what_it_made(self, store: TenantStore) -> None:
        assert store.made_by(KEY) is store.made_by(None) is None
        first, created = self.accept_keyed(store, 1)
        assert created
        assert store.made_by(KEY) == first
        assert self.accept_keyed(store, 2) == (first, False)
        assert store.solve(f"{2:012x}") is None
        assert self.accept_keyed(store, 3, replace(KEY, key="other"))[1]
        assert self.accept_keyed(store, 4, replace(KEY, scope="/v1/others"))[1]

    def test_a_key_that_says_something_else_makes_nothing(self, store: TenantStore) -> None:
        self.accept_keyed(store, 1)
        with pytest.raises(KeyReused):
            self.accept_keyed(store, 2, OTHER)
        with pytest.raises(KeyReused):
            store.made_by(OTHER)
        assert store.solve(f"{2:012x}") is None

    def test_a_key_whose_request_was_answered_by_an_equal_solve(self, store: TenantStore) -> None:
        store.accept(new_solve(1, request="same"), max_queued=9, reuse=True)
        record, created = store.accept(new_solve(2, request="same"), max_queued=9, reuse=True, key=KEY)
        assert (record.id, created) == (f"{1:012x}", False)
        assert store.made_by(KEY) == f"{1:012x}"

    def test_a_refused_request_leaves_its_key_free(self, store: TenantStore) -> None:
        self.accept_keyed(store, 1, replace(KEY, key="first"))
        with pytest.raises(QueueFull):
            self.accept_keyed(store, 2, max_queued=1)
        assert store.made_by(KEY) is None
        assert self.accept_keyed(store, 3, OTHER)[1]

    def test_keys_are_forgotten_after_a_day(self, store: TenantStore) -> None:
        first, _ = self.accept_keyed(store, 1)
        assert store.made_by(replace(KEY, at=KEY.at + RETENTION_SECONDS)) == first
        late = replace(OTHER, at=KEY.at + RETENTION_SECONDS + 1)
        assert store.made_by(late) is None
        assert self.accept_keyed(store, 2, late) == (f"{2:012x}", True)

    def test_of_racing_requests_with_a_key_one_happens(self, store: TenantStore) -> None:
        # All are answered: those that come late wait for the first.
        answered = race(16, lambda index: self.accept_keyed(store, index))
        assert sum(created for _, created in answered) == 1
        assert len({solve for solve, _ in answered}) == 1

    def test_a_key_that_is_over_is_taken_over_once(self, store: TenantStore) -> None:
        first, _ = self.accept_keyed(store, 99)
        late = replace(OTHER, at=KEY.at + RETENTION_SECONDS + 1)
        answered = race(16, lambda index: self.accept_keyed(store, index, late))
        assert sum(created for _, created in answered) == 1
        (made,) = {solve for solve, _ in answered}
        assert made != first

    def test_a_fit_with_a_key_is_begun_once(self, store: TenantStore) -> None:
        first = store.add_fit("m", request={}, max_fitting=9, now=1.0, key=KEY)
        assert store.add_fit("m", request={}, max_fitting=9, now=2.0, key=KEY) == first
        assert store.made_by(KEY) == "m@1"
        assert store.add_fit("m", request={}, max_fitting=9, now=2.0).version == 2
        with pytest.raises(KeyReused):
            store.add_fit("m", request={}, max_fitting=9, now=2.0, key=OTHER)

    def test_documents_remember_keys_too(self, store: TenantStore) -> None:
        record = MeasurementsRecord(
            digest=DIGEST, device="", num_rows=1, source="job", plan_digest=None, comparison=None, created_at=1.0
        )
        assert store.add_measurements(record, canonical=b"{}", key=KEY)[1]
        assert not store.add_measurements(record, canonical=b"{}", key=KEY)[1]
        with pytest.raises(KeyReused):
            store.add_measurements(record, canonical=b"{}", key=OTHER)
