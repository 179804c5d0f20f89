"""Statistics, measurements and learned cost models."""

from dataclasses import replace

import pytest

from api.store.database import Database, TenantStore
from api.store.models.activations import ActivationConflict, UnknownModel
from api.store.models.measurements import MeasurementsRecord
from api.store.models.statistics import StatisticsRecord
from api.store.solves.records import QueueFull
from tests.support.contracts.race import race
from tests.support.contracts.store.values import DIGEST, OTHER

PROFILE = "dgx-h100-80g"


def batch(digest: str = DIGEST, **changes: object) -> MeasurementsRecord:
    values = {
        "digest": digest,
        "device": "H100",
        "num_rows": 3,
        "source": "benchmark",
        "plan_digest": None,
        "comparison": None,
        "created_at": 1.0,
    }
    return MeasurementsRecord(**(values | changes))


class ModelContract:
    """Statistics, measurements, models and activations of one tenant."""

    def test_statistics_are_preserved_once(self, store: TenantStore) -> None:
        first = StatisticsRecord(digest=DIGEST, num_tables=2, num_lookups=9, created_at=1.0)
        assert store.add_statistics(first, canonical=b"{}") == (first, True)
        assert store.add_statistics(replace(first, created_at=2.0), canonical=b"{}") == (first, False)
        second = replace(first, digest=OTHER)
        store.add_statistics(second, canonical=b"[]")
        assert store.statistics(OTHER) == b"[]"
        assert store.statistics("sha256:" + "3" * 64) is None
        assert store.statistics_records(limit=9, after=None) == [first, second]
        assert store.statistics_records(limit=1, after=None) == [first]
        assert store.statistics_records(limit=9, after=DIGEST) == [second]

    def test_racing_keepers_of_equal_statistics_agree(self, store: TenantStore) -> None:
        record = StatisticsRecord(digest=DIGEST, num_tables=2, num_lookups=9, created_at=1.0)
        preserved = race(8, lambda _: store.add_statistics(record, canonical=b"{}")[1])
        assert sorted(map(str, preserved)) == ["False"] * 7 + ["True"]

    def test_numbers_of_lookups_may_be_large(self, store: TenantStore) -> None:
        record = StatisticsRecord(digest=DIGEST, num_tables=2, num_lookups=10**15, created_at=1.0)
        store.add_statistics(record, canonical=b"{}")
        assert store.statistics_records(limit=1, after=None) == [record]

    def fit(self, store: TenantStore, name: str = "m", *, now: float = 1.0, max_fitting: int = 99) -> int:
        return store.add_fit(name, request={"seed": 0}, max_fitting=max_fitting, now=now).version

    def ready(self, store: TenantStore, name: str = "m", digest: str = DIGEST) -> int:
        return store.add_model(name, digest=digest, canonical=b"{}", device="H100", figures={"a": 1}, now=2.0)[
            0
        ].version

    def test_equal_measurements_are_preserved_once(self, store: TenantStore) -> None:
        record = batch(comparison={"drift": True}, plan_digest=OTHER, source="job")
        assert store.add_measurements(record, canonical=b"[1]") == (record, True)
        assert store.add_measurements(batch(created_at=9.0), canonical=b"[2]") == (record, False)
        assert store.measurements(DIGEST) == b"[1]"
        assert store.measurements_record(DIGEST) == record
        assert store.measurements(OTHER) is store.measurements_record(OTHER) is None

    def test_measurements_are_listed_by_digest_and_device(self, store: TenantStore) -> None:
        store.add_measurements(batch(OTHER, device="A100"), canonical=b"")
        store.add_measurements(batch(DIGEST), canonical=b"")
        everything = store.measurements_records(limit=9, after=None, device=None)
        assert [one.digest for one in everything] == [DIGEST, OTHER]
        assert store.measurements_records(limit=1, after=DIGEST, device=None) == everything[1:]
        assert store.measurements_records(limit=9, after=None, device="A100") == everything[1:]

    def test_versions_of_a_name_count_from_one(self, store: TenantStore) -> None:
        assert [self.fit(store), self.fit(store), self.fit(store, "other"), self.ready(store)] == [1, 2, 1, 3]
        assert sorted(race(8, lambda _: self.fit(store, "raced"))) == list(range(1, 9))

    def test_a_fit_begins_and_ends_with_a_document(self, store: TenantStore) -> None:
        version = self.fit(store)
        fitting = store.model("m", version)
        assert fitting is not None
        assert (fitting.state, fitting.request, fitting.digest, fitting.ended_at) == (
            "fitting",
            {"seed": 0},
            None,
            None,
        )
        assert store.begin_fit("m", version, max_attempts=2, now=3.0) == replace(fitting, attempts=1)
        assert store.finish_fit("m", version, now=4.0, digest=DIGEST, canonical=b"{}", device="H100", figures={"b": 2})
        done = store.model("m", version)
        assert done is not None
        assert (done.state, done.digest, done.device, done.figures, done.ended_at) == (
            "ready",
            DIGEST,
            "H100",
            {"b": 2},
            4.0,
        )
        assert store.model_document(DIGEST) == b"{}"
        assert store.model_of_digest(DIGEST) == done

    def test_what_has_ended_never_changes(self, store: TenantStore) -> None:
        version = self.fit(store)
        assert store.finish_fit("m", version, now=4.0, error={"code": "x"})
        assert not store.finish_fit("m", version, now=5.0, digest=DIGEST, canonical=b"{}")
        failed = store.model("m", version)
        assert failed is not None
        assert (failed.state, failed.error, failed.ended_at) == ("failed", {"code": "x"}, 4.0)
        assert store.model_document(DIGEST) is None
        assert not store.finish_fit("m", 99, now=5.0, error={})

    def test_fits_that_have_not_ended_are_listed_oldest_first(self, database: Database, store: TenantStore) -> None:
        self.fit(store, "late", now=2.0)
        self.fit(store, "early", now=1.0)
        version = self.fit(store, "done", now=0.5)
        store.finish_fit("done", version, now=3.0, error={"code": "c"})
        assert [one.name for one in database.unended_fits()] == ["early", "late"]
        assert store.begin_fit("done", version, max_attempts=9, now=4.0) is None
        assert store.begin_fit("nothing", 1, max_attempts=9, now=4.0) is None

    def test_a_fit_that_was_cut_off_is_begun_again_but_not_forever(self, store: TenantStore) -> None:
        version = self.fit(store)
        for _ in range(2):
            assert store.begin_fit("m", version, max_attempts=2, now=3.0) is not None
        assert store.begin_fit("m", version, max_attempts=2, now=4.0) is None
        failed = store.model("m", version)
        assert failed is not None
        assert failed.state == "failed"
        assert failed.error is not None
        assert failed.error["code"] == "cut-off"
        assert failed.ended_at == 4.0

    def test_an_attempt_that_was_given_up_ends_nothing(self, store: TenantStore) -> None:
        version = self.fit(store)
        for _ in range(2):
            store.begin_fit("m", version, max_attempts=9, now=3.0)
        assert not store.finish_fit("m", version, now=4.0, error={"code": "killed"}, attempt=1)
        assert store.finish_fit("m", version, now=5.0, digest=DIGEST, canonical=b"{}", attempt=2)

    def test_only_so_many_fits_wait(self, store: TenantStore) -> None:
        self.fit(store, max_fitting=1)
        with pytest.raises(QueueFull):
            self.fit(store, max_fitting=1)

    def test_an_equal_document_of_a_name_is_the_same_version(self, store: TenantStore) -> None:
        first, created = store.add_model("m", digest=DIGEST, canonical=b"{}", device="H100", figures={}, now=1.0)
        again, created_again = store.add_model("m", digest=DIGEST, canonical=b"other", device="", figures={}, now=2.0)
        assert (created, created_again, again) == (True, False, first)
        assert self.ready(store, "other name") == 1
        assert store.model_document(DIGEST) == b"{}"
        assert store.model_of_digest(DIGEST) == first

    def test_models_are_listed_by_name_and_version(self, store: TenantStore) -> None:
        for name in ("b", "a", "b"):
            self.fit(store, name)
        listed = store.models(limit=9, after=None)
        assert [(one.name, one.version) for one in listed] == [("a", 1), ("b", 1), ("b", 2)]
        assert store.models(limit=1, after=("a", 1)) == listed[1:2]
        assert store.models(limit=9, after=("b", 1)) == listed[2:]

    def test_activations_are_a_line_without_gaps(self, store: TenantStore) -> None:
        assert store.activation(PROFILE) is None
        one, two = self.ready(store), self.ready(store, digest=OTHER)
        first = store.activate(PROFILE, model_name="m", model_version=one, expected_version=0, now=5.0)
        assert (first.version, first.digest) == (1, DIGEST)
        with pytest.raises(ActivationConflict) as conflict:
            store.activate(PROFILE, model_name="m", model_version=two, expected_version=0, now=6.0)
        assert conflict.value.current == first
        second = store.activate(PROFILE, model_name="m", model_version=two, expected_version=1, now=7.0)
        assert store.activation(PROFILE) == second
        assert store.activation_history(PROFILE) == [first, second]
        assert store.activation("other") is None
        assert store.activation_history("other") == []

    def test_of_racing_activations_one_wins(self, store: TenantStore) -> None:
        version = self.ready(store)

        def activate(_: int) -> object:
            return store.activate(PROFILE, model_name="m", model_version=version, expected_version=0, now=5.0)

        lost = [one for one in race(8, activate) if isinstance(one, ActivationConflict)]
        assert len(lost) == 7

    def test_only_a_ready_model_becomes_active(self, store: TenantStore) -> None:
        version = self.fit(store)
        for number in (version, 99):
            with pytest.raises(UnknownModel):
                store.activate(PROFILE, model_name="m", model_version=number, expected_version=0, now=5.0)
        assert store.activation(PROFILE) is None

    def test_versions_of_models_are_counted_by_state(self, database: Database, store: TenantStore) -> None:
        assert database.num_models_by_state() == {}
        for name in ("one", "two"):
            store.add_fit(name, request={"seed": 0}, max_fitting=9, now=1.0)
        store.finish_fit("one", 1, now=2.0, error={"code": "cancelled"})
        assert database.num_models_by_state() == {"fitting": 1, "failed": 1}
