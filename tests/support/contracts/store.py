"""What every store promises; each one's test class inherits this."""

import time
from dataclasses import replace

import pytest

from api.store.database import TenantStore
from api.store.models.statistics import StatisticsRecord
from api.store.plans.channels import VersionConflict
from api.store.plans.plans import PlanRecord, UnknownPlan
from api.store.solves.records import ACCIDENTS, NewSolve, QueueFull, SolveRecord
from tests.support.contracts.race import race

DIGEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64


def new_solve(number: int, *, request: str | None = None) -> NewSolve:
    return NewSolve(
        id=f"{number:012x}",
        request_digest=request or f"request-{number}",
        spec_digest=f"spec-{number}",
        spec_bytes=b'{"n":%d}' % number,
        name=f"name-{number}",
        assumptions=[{"subject": "s", "value": "v"}],
        warnings=[{"code": "c"}],
        created_at=float(number),
    )


def plan(digest: str = DIGEST, canonical: bytes = b"{}") -> PlanRecord:
    return PlanRecord(digest=digest, canonical=canonical, created_at=1.0)


class StoreContract:
    """Subclasses give a fixture ``store``."""

    def accept(self, store: TenantStore, number: int, **options: object) -> tuple[object, bool]:
        request = options.pop("request", None)
        return store.accept(new_solve(number, request=request), **{"max_queued": 100, "reuse": True, **options})

    def begin(self, store: TenantStore, number: int, *, executor_id: str = "a", now: float = 2.0) -> SolveRecord:
        record = store.begin(f"{number:012x}", executor_id=executor_id, now=now)
        assert record is not None
        return record

    def publish(self, store: TenantStore, number: int, record: PlanRecord) -> None:
        self.accept(store, number)
        assert store.finish(f"{number:012x}", state="succeeded", now=9.0, result={"plan_digest": "x"}, plan=record)

    def test_an_accepted_solve_is_queued_and_found(self, store: TenantStore) -> None:
        record, created = self.accept(store, 1)
        assert created
        assert record == store.solve(record.id)
        assert (record.state, record.name, record.created_at) == ("queued", "name-1", 1.0)
        assert list(record.assumptions) == [{"subject": "s", "value": "v"}]
        assert store.spec("request-1") == b'{"n":1}'
        assert store.solve("nothing") is None
        assert store.spec("nothing") is None

    def test_a_problem_is_found_by_its_digest(self, store: TenantStore) -> None:
        self.accept(store, 1)
        self.accept(store, 2)
        assert store.spec_of_problem("spec-2") == b'{"n":2}'
        assert store.spec_of_problem("nothing") is None

    def test_equal_requests_get_one_solve(self, store: TenantStore) -> None:
        first, _ = self.accept(store, 1, request="same")
        second, created = self.accept(store, 2, request="same")
        assert (second.id, created) == (first.id, False)
        third, created = self.accept(store, 3, request="same", reuse=False)
        assert created
        assert third.id != first.id

    def test_failed_and_cancelled_solves_are_not_reused(self, store: TenantStore) -> None:
        for number, state in ((1, "failed"), (2, "cancelled")):
            self.accept(store, number, request="same")
            store.finish(f"{number:012x}", state=state, now=2.0)
        assert self.accept(store, 3, request="same")[1]

    @pytest.mark.parametrize("limit", ACCIDENTS)
    def test_what_an_accident_cut_off_is_not_reused(self, store: TenantStore, limit: str) -> None:
        for number, why in ((1, "time"), (2, limit)):
            self.accept(store, number, request=f"of {number}")
            store.finish(f"{number:012x}", state="succeeded", now=2.0, result={"termination": {"limit": why}})
        assert not self.accept(store, 3, request="of 1")[1]
        assert self.accept(store, 4, request="of 2")[1]
        with_deadline = replace(new_solve(5, request="with a deadline"), answered_by="of 2")
        store.finish(f"{4:012x}", state="succeeded", now=2.0, result={"termination": {"limit": limit}})
        assert store.accept(with_deadline, max_queued=100, reuse=True)[1]

    def test_what_is_being_cancelled_is_not_reused(self, store: TenantStore) -> None:
        self.accept(store, 1, request="same")
        self.begin(store, 1)
        store.request_cancel(f"{1:012x}", now=3.0)
        assert self.accept(store, 2, request="same")[1]

    def test_racing_equal_requests_get_one_solve(self, store: TenantStore) -> None:
        results = race(16, lambda index: self.accept(store, index, request="same"))
        assert sum(created for _, created in results) == 1
        assert len({record.id for record, _ in results}) == 1

    def test_a_full_queue_refuses_and_keeps_nothing(self, store: TenantStore) -> None:
        self.accept(store, 1, max_queued=1)
        with pytest.raises(QueueFull):
            self.accept(store, 2, max_queued=1)
        assert store.spec("request-2") is None
        self.begin(store, 1)
        assert self.accept(store, 3, max_queued=1)[1]  # running solves do not wait

    def test_each_begin_is_an_attempt_of_an_executor(self, store: TenantStore) -> None:
        self.accept(store, 1)
        first = self.begin(store, 1, executor_id="a", now=2.0)
        assert (first.state, first.executor_id, first.attempts, first.started_at) == ("running", "a", 1, 2.0)
        second = self.begin(store, 1, executor_id="b", now=3.0)
        assert (second.executor_id, second.attempts, second.started_at) == ("b", 2, 2.0)
        assert store.solve(second.id) == second
        store.finish(second.id, state="failed", now=4.0)
        assert store.begin(second.id, executor_id="a", now=5.0) is None
        assert store.begin("nothing", executor_id="a", now=5.0) is None

    def test_incumbents_are_kept_while_a_solve_runs(self, store: TenantStore) -> None:
        self.accept(store, 1)
        store.keep_incumbent(f"{1:012x}", attempt=0, document=b"early", progress={}, now=2.0)
        assert store.incumbent(f"{1:012x}") is None  # not running yet
        self.begin(store, 1)
        progress = {"incumbent_seconds": 1.0}
        store.keep_incumbent(f"{1:012x}", attempt=1, document=b"better", progress=progress, now=2.5)
        assert store.incumbent(f"{1:012x}") == b"better"
        assert store.solve(f"{1:012x}").progress == {"incumbent_seconds": 1.0}

    def test_an_attempt_that_was_given_up_changes_nothing(self, store: TenantStore) -> None:
        self.accept(store, 1)
        self.begin(store, 1)
        self.begin(store, 1)
        store.keep_incumbent(f"{1:012x}", attempt=1, document=b"late", progress={}, now=2.5)
        assert store.incumbent(f"{1:012x}") is None
        assert not store.finish(f"{1:012x}", state="succeeded", now=3.0, plan=plan(), attempt=1)
        assert store.plan(DIGEST) is None
        assert store.finish(f"{1:012x}", state="succeeded", now=4.0, plan=plan(), attempt=2)

    def test_finishing_publishes_and_ends_once(self, store: TenantStore) -> None:
        self.accept(store, 1)
        self.begin(store, 1)
        assert store.finish(f"{1:012x}", state="succeeded", now=3.0, result={"a": 1}, plan=plan(canonical=b"first"))
        assert not store.finish(f"{1:012x}", state="failed", now=4.0, plan=plan(OTHER))
        record = store.solve(f"{1:012x}")
        assert (record.state, record.ended_at, record.result) == ("succeeded", 3.0, {"a": 1})
        assert store.plan(OTHER) is None  # the second end happened not at all
        assert store.incumbent(f"{1:012x}") is None

    def test_the_first_publication_of_a_digest_wins(self, store: TenantStore) -> None:
        self.publish(store, 1, plan(canonical=b"first"))
        self.publish(store, 2, plan(canonical=b"second"))
        assert store.plan(DIGEST).canonical == b"first"
        assert store.plan(OTHER) is None

    def test_a_clock_that_is_set_back_makes_no_negative_durations(self, store: TenantStore) -> None:
        for number, now in ((1, -7.0), (2, 5.0), (3, 5.0)):
            self.accept(store, number)
            if number < 3:
                assert self.begin(store, number, now=now).started_at == max(now, store.solve(f"{1:012x}").created_at)
        store.finish(f"{1:012x}", state="failed", now=-9.0)
        store.finish(f"{2:012x}", state="failed", now=-9.0)
        store.request_cancel(f"{3:012x}", now=-9.0)
        first, second, third = (store.solve(f"{number:012x}") for number in (1, 2, 3))
        assert first.created_at == first.started_at == first.ended_at
        assert second.started_at == second.ended_at == 5.0
        assert third.ended_at == third.created_at

    def test_cancelling(self, store: TenantStore) -> None:
        for number in (1, 2):
            self.accept(store, number)
        self.begin(store, 1)
        running, queued = store.request_cancel(f"{1:012x}", now=3.0), store.request_cancel(f"{2:012x}", now=3.0)
        assert (running.state, running.cancel_requested) == ("running", True)
        assert (queued.state, queued.ended_at) == ("cancelled", 3.0)
        assert store.request_cancel(f"{2:012x}", now=4.0).ended_at == 3.0
        assert store.request_cancel("nothing", now=4.0) is None

    def test_running_solves_of_a_dead_executor_are_queued_again(self, store: TenantStore) -> None:
        for number, executor in ((1, "dead"), (2, "dead"), (3, "alive")):
            self.accept(store, number)
            self.begin(store, number, executor_id=executor)
        store.finish(f"{2:012x}", state="failed", now=3.0)
        assert store.release_solves("dead") == 1
        assert [store.solve(f"{number:012x}").state for number in (1, 2, 3)] == ["queued", "failed", "running"]
        assert store.release_solves("dead") == 0
        assert store.release_solves(None) == 1
        assert store.solve(f"{3:012x}").state == "queued"

    def test_what_has_not_ended_is_listed_oldest_first(self, store: TenantStore) -> None:
        for number in (3, 1, 2, 4):
            self.accept(store, number)
        self.begin(store, 2)
        store.finish(f"{4:012x}", state="failed", now=3.0)
        assert [record.id for record in store.unended_solves()] == [f"{number:012x}" for number in (1, 2, 3)]

    def test_a_solve_that_is_queued_again_keeps_its_plan_also_when_it_is_cancelled(self, store: TenantStore) -> None:
        self.accept(store, 1)
        self.begin(store, 1)
        progress = {"incumbent_seconds": 1.0}
        store.keep_incumbent(f"{1:012x}", attempt=1, document=b"best", progress=progress, now=2.5)
        store.release_solves("a")
        assert store.incumbent(f"{1:012x}") == b"best"
        marked = store.request_cancel(f"{1:012x}", now=3.0)
        assert (marked.state, marked.cancel_requested) == ("queued", True)
        assert store.incumbent(f"{1:012x}") == b"best"
        assert store.finish(f"{1:012x}", state="cancelled", now=4.0, plan=plan(canonical=b"best"))
        assert store.plan(DIGEST).canonical == b"best"

    def test_lists_are_newest_first_and_paged_by_id(self, store: TenantStore) -> None:
        for number in range(5):
            self.accept(store, number)
        self.begin(store, 0)
        first = store.solves(limit=2, before=None, state=None)
        assert [record.created_at for record in first] == [4.0, 3.0]
        rest = store.solves(limit=9, before=first[-1].id, state=None)
        assert [record.created_at for record in rest] == [2.0, 1.0, 0.0]
        assert [record.created_at for record in store.solves(limit=9, before=None, state="running")] == [0.0]

    def test_a_channel_moves_only_from_the_version_that_is_named(self, store: TenantStore) -> None:
        self.publish(store, 1, plan())
        self.publish(store, 2, plan(OTHER))
        assert store.channel("c") is None
        assert store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0).version == 1
        with pytest.raises(VersionConflict) as caught:
            store.put_channel("c", plan_digest=OTHER, expected_version=0, now=2.0)
        assert caught.value.current == store.channel("c")
        assert store.put_channel("c", plan_digest=OTHER, expected_version=1, now=3.0).version == 2
        history = store.channel_versions("c", limit=9, before=None)
        assert [(item.version, item.plan_digest) for item in history] == [(2, OTHER), (1, DIGEST)]

    def test_versions_of_a_channel_are_paged_newest_first(self, store: TenantStore) -> None:
        self.publish(store, 1, plan())
        for version in range(3):
            store.put_channel("c", plan_digest=DIGEST, expected_version=version, now=float(version))
        store.put_channel("d", plan_digest=DIGEST, expected_version=0, now=9.0)
        first = store.channel_versions("c", limit=2, before=None)
        assert [(item.version, item.updated_at) for item in first] == [(3, 2.0), (2, 1.0)]
        assert [item.version for item in store.channel_versions("c", limit=9, before=2)] == [1]
        assert store.channel_versions("nothing", limit=9, before=None) == []

    def test_statistics_are_kept_once(self, store: TenantStore) -> None:
        first = StatisticsRecord(digest=DIGEST, num_tables=2, num_lookups=9, created_at=1.0)
        assert store.keep_statistics(first, canonical=b"{}") == (first, True)
        assert store.keep_statistics(replace(first, created_at=2.0), canonical=b"{}") == (first, False)
        second = replace(first, digest=OTHER)
        store.keep_statistics(second, canonical=b"[]")
        assert store.statistics(OTHER) == b"[]"
        assert store.statistics("sha256:" + "3" * 64) is None
        assert store.statistics_records(limit=9, after=None) == [first, second]
        assert store.statistics_records(limit=1, after=None) == [first]
        assert store.statistics_records(limit=9, after=DIGEST) == [second]

    def test_racing_keepers_of_equal_statistics_agree(self, store: TenantStore) -> None:
        record = StatisticsRecord(digest=DIGEST, num_tables=2, num_lookups=9, created_at=1.0)
        kept = race(8, lambda _: store.keep_statistics(record, canonical=b"{}")[1])
        assert sorted(map(str, kept)) == ["False"] * 7 + ["True"]

    def test_a_channel_cannot_point_at_nothing(self, store: TenantStore) -> None:
        with pytest.raises(UnknownPlan):
            store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0)
        assert store.channel("c") is None

    def test_racing_promoters_make_a_line(self, store: TenantStore) -> None:
        self.publish(store, 1, plan())

        def promote(_: int) -> int:
            wins = 0
            while wins < 3:
                current = store.channel("c")
                try:
                    version = current.version if current else 0
                    store.put_channel("c", plan_digest=DIGEST, expected_version=version, now=1.0)
                    wins += 1
                except VersionConflict:
                    continue
            return wins

        assert race(8, promote) == [3] * 8
        # 8 promoters x 3 changes, none lost: versions 1 to 24 without a gap.
        history = store.channel_versions("c", limit=99, before=None)
        assert [item.version for item in history] == list(range(24, 0, -1))
        assert store.channel("c").version == 24

    def test_an_executor_lives_until_it_is_ended_or_replaced(self, store: TenantStore) -> None:
        store.enter_executor("a", life="1", host="h")
        store.enter_executor("b", life="1", host="h")
        assert [(item.id, item.life, item.host) for item in store.executors()] == [("a", "1", "h"), ("b", "1", "h")]
        assert all(0 <= item.silent_seconds < 60 for item in store.executors())
        store.enter_executor("a", life="2", host="h")
        assert not store.beat("a", life="1")
        assert store.beat("a", life="2")
        assert not store.end_executor("a", life="1")
        assert store.end_executor("a", life="2")
        assert not store.beat("a", life="2")
        assert [item.id for item in store.executors()] == ["b"]

    def test_the_silence_of_an_executor_grows_until_it_is_heard_of(self, store: TenantStore) -> None:
        store.enter_executor("a", life="1", host="h")
        time.sleep(0.3)
        (before,) = store.executors()
        assert before.silent_seconds >= 0.25
        store.beat("a", life="1")
        (after,) = store.executors()
        assert after.silent_seconds < before.silent_seconds

    def test_numbers_of_lookups_may_be_large(self, store: TenantStore) -> None:
        record = StatisticsRecord(digest=DIGEST, num_tables=2, num_lookups=10**15, created_at=1.0)
        store.keep_statistics(record, canonical=b"{}")
        assert store.statistics_records(limit=1, after=None) == [record]

    def test_names_are_sorted_by_their_bytes(self, store: TenantStore) -> None:
        self.publish(store, 1, plan())
        names = ["b", "a_b", "a-b", "a/b", "a.b", "ab", "0"]
        for name in names:
            store.put_channel(name, plan_digest=DIGEST, expected_version=0, now=1.0)
        assert [item.name for item in store.channels(limit=9, after=None)] == sorted(names)
