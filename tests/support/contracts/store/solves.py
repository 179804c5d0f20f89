"""Solves: accepted, run, cancelled, ended and listed."""

from dataclasses import replace

import pytest

from api.store.database import Database, TenantStore
from api.store.solves.records import ACCIDENTS, QueueFull, SolveRecord
from tests.support.contracts.race import race
from tests.support.contracts.store.values import DIGEST, OTHER, new_solve, plan, publish


class SolveContract:
    """Solves of one tenant, and their runs."""

    def accept(self, store: TenantStore, number: int, **options: object) -> tuple[object, bool]:
        request = options.pop("request", None)
        return store.accept(new_solve(number, request=request), **{"max_queued": 100, "reuse": True, **options})

    def begin(self, database: Database, number: int, *, executor_id: str = "a", now: float = 2.0) -> SolveRecord:
        record = database.begin(f"{number:012x}", executor_id=executor_id, now=now)
        assert record is not None
        return record

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

    def test_failed_and_cancelled_solves_are_not_reused(self, database: Database, store: TenantStore) -> None:
        for number, state in ((1, "failed"), (2, "cancelled")):
            self.accept(store, number, request="same")
            database.finish(f"{number:012x}", state=state, now=2.0)
        assert self.accept(store, 3, request="same")[1]

    @pytest.mark.parametrize("limit", ACCIDENTS)
    def test_what_an_accident_cut_off_is_not_reused(self, database: Database, store: TenantStore, limit: str) -> None:
        for number, why in ((1, "time"), (2, limit)):
            self.accept(store, number, request=f"of {number}")
            database.finish(f"{number:012x}", state="succeeded", now=2.0, result={"termination": {"limit": why}})
        assert not self.accept(store, 3, request="of 1")[1]
        assert self.accept(store, 4, request="of 2")[1]
        with_deadline = replace(new_solve(5, request="with a deadline"), answered_by="of 2")
        database.finish(f"{4:012x}", state="succeeded", now=2.0, result={"termination": {"limit": limit}})
        assert store.accept(with_deadline, max_queued=100, reuse=True)[1]

    def test_what_is_being_cancelled_is_not_reused(self, database: Database, store: TenantStore) -> None:
        self.accept(store, 1, request="same")
        self.begin(database, 1)
        store.request_cancel(f"{1:012x}", now=3.0)
        assert self.accept(store, 2, request="same")[1]

    def test_racing_equal_requests_get_one_solve(self, store: TenantStore) -> None:
        results = race(16, lambda index: self.accept(store, index, request="same"))
        assert sum(created for _, created in results) == 1
        assert len({record.id for record, _ in results}) == 1

    def test_a_full_queue_refuses_and_keeps_nothing(self, database: Database, store: TenantStore) -> None:
        self.accept(store, 1, max_queued=1)
        with pytest.raises(QueueFull):
            self.accept(store, 2, max_queued=1)
        assert store.spec("request-2") is None
        self.begin(database, 1)
        assert self.accept(store, 3, max_queued=1)[1]  # running solves do not wait

    def test_each_begin_is_an_attempt_of_an_executor(self, database: Database, store: TenantStore) -> None:
        self.accept(store, 1)
        first = self.begin(database, 1, executor_id="a", now=2.0)
        assert (first.state, first.executor_id, first.attempts, first.started_at) == ("running", "a", 1, 2.0)
        second = self.begin(database, 1, executor_id="b", now=3.0)
        assert (second.executor_id, second.attempts, second.started_at) == ("b", 2, 2.0)
        assert store.solve(second.id) == second
        database.finish(second.id, state="failed", now=4.0)
        assert database.begin(second.id, executor_id="a", now=5.0) is None
        assert database.begin("nothing", executor_id="a", now=5.0) is None

    def test_incumbents_are_preserved_while_a_solve_runs(self, database: Database, store: TenantStore) -> None:
        self.accept(store, 1)
        database.save_incumbent(f"{1:012x}", attempt=0, document=b"early", progress={}, now=2.0)
        assert database.incumbent(f"{1:012x}") is None  # not running yet
        self.begin(database, 1)
        progress = {"incumbent_seconds": 1.0}
        database.save_incumbent(f"{1:012x}", attempt=1, document=b"better", progress=progress, now=2.5)
        assert database.incumbent(f"{1:012x}") == b"better"
        assert store.solve(f"{1:012x}").progress == {"incumbent_seconds": 1.0}

    def test_an_attempt_that_was_given_up_changes_nothing(self, database: Database, store: TenantStore) -> None:
        self.accept(store, 1)
        self.begin(database, 1)
        self.begin(database, 1)
        database.save_incumbent(f"{1:012x}", attempt=1, document=b"late", progress={}, now=2.5)
        assert database.incumbent(f"{1:012x}") is None
        assert not database.finish(f"{1:012x}", state="succeeded", now=3.0, plan=plan(), attempt=1)
        assert store.plan(DIGEST) is None
        assert database.finish(f"{1:012x}", state="succeeded", now=4.0, plan=plan(), attempt=2)

    def test_finishing_publishes_and_ends_once(self, database: Database, store: TenantStore) -> None:
        self.accept(store, 1)
        self.begin(database, 1)
        assert database.finish(f"{1:012x}", state="succeeded", now=3.0, result={"a": 1}, plan=plan(canonical=b"first"))
        assert not database.finish(f"{1:012x}", state="failed", now=4.0, plan=plan(OTHER))
        record = store.solve(f"{1:012x}")
        assert (record.state, record.ended_at, record.result) == ("succeeded", 3.0, {"a": 1})
        assert store.plan(OTHER) is None  # the second end happened not at all
        assert database.incumbent(f"{1:012x}") is None

    def test_the_first_publication_of_a_digest_wins(self, database: Database, store: TenantStore) -> None:
        publish(database, 1, plan(canonical=b"first"))
        publish(database, 2, plan(canonical=b"second"))
        assert store.plan(DIGEST).canonical == b"first"
        assert store.plan(OTHER) is None

    def test_a_clock_that_is_set_back_makes_no_negative_durations(self, database: Database, store: TenantStore) -> None:
        for number, now in ((1, -7.0), (2, 5.0), (3, 5.0)):
            self.accept(store, number)
            if number < 3:
                assert self.begin(database, number, now=now).started_at == max(now, store.solve(f"{1:012x}").created_at)
        database.finish(f"{1:012x}", state="failed", now=-9.0)
        database.finish(f"{2:012x}", state="failed", now=-9.0)
        store.request_cancel(f"{3:012x}", now=-9.0)
        first, second, third = (store.solve(f"{number:012x}") for number in (1, 2, 3))
        assert first.created_at == first.started_at == first.ended_at
        assert second.started_at == second.ended_at == 5.0
        assert third.ended_at == third.created_at

    def test_cancelling(self, database: Database, store: TenantStore) -> None:
        for number in (1, 2):
            self.accept(store, number)
        self.begin(database, 1)
        running, queued = store.request_cancel(f"{1:012x}", now=3.0), store.request_cancel(f"{2:012x}", now=3.0)
        assert (running.state, running.cancel_requested) == ("running", True)
        assert (queued.state, queued.ended_at) == ("cancelled", 3.0)
        assert store.request_cancel(f"{2:012x}", now=4.0).ended_at == 3.0
        assert store.request_cancel("nothing", now=4.0) is None

    def test_running_solves_of_a_dead_executor_are_queued_again(self, database: Database, store: TenantStore) -> None:
        for number, executor in ((1, "dead"), (2, "dead"), (3, "alive")):
            self.accept(store, number)
            self.begin(database, number, executor_id=executor)
        database.finish(f"{2:012x}", state="failed", now=3.0)
        assert database.release_solves("dead") == 1
        assert [store.solve(f"{number:012x}").state for number in (1, 2, 3)] == ["queued", "failed", "running"]
        assert database.release_solves("dead") == 0
        assert database.release_solves(None) == 1
        assert store.solve(f"{3:012x}").state == "queued"

    def test_what_has_not_ended_is_listed_oldest_first(self, database: Database, store: TenantStore) -> None:
        for number in (3, 1, 2, 4):
            self.accept(store, number)
        self.begin(database, 2)
        database.finish(f"{4:012x}", state="failed", now=3.0)
        assert [record.id for record in database.unended_solves()] == [f"{number:012x}" for number in (1, 2, 3)]

    def test_a_solve_that_is_queued_again_keeps_its_plan_also_when_it_is_cancelled(
        self, database: Database, store: TenantStore
    ) -> None:
        self.accept(store, 1)
        self.begin(database, 1)
        progress = {"incumbent_seconds": 1.0}
        database.save_incumbent(f"{1:012x}", attempt=1, document=b"best", progress=progress, now=2.5)
        database.release_solves("a")
        assert database.incumbent(f"{1:012x}") == b"best"
        marked = store.request_cancel(f"{1:012x}", now=3.0)
        assert (marked.state, marked.cancel_requested) == ("queued", True)
        assert database.incumbent(f"{1:012x}") == b"best"
        assert database.finish(f"{1:012x}", state="cancelled", now=4.0, plan=plan(canonical=b"best"))
        assert store.plan(DIGEST).canonical == b"best"

    def test_lists_are_newest_first_and_paged_by_id(self, database: Database, store: TenantStore) -> None:
        for number in range(5):
            self.accept(store, number)
        self.begin(database, 0)
        first = store.solves(limit=2, before=None, state=None)
        assert [record.created_at for record in first] == [4.0, 3.0]
        rest = store.solves(limit=9, before=first[-1].id, state=None)
        assert [record.created_at for record in rest] == [2.0, 1.0, 0.0]
        assert [record.created_at for record in store.solves(limit=9, before=None, state="running")] == [0.0]

    def test_solves_are_counted_by_state(self, database: Database, store: TenantStore) -> None:
        assert database.num_solves_by_state() == {}
        for number in range(1, 6):
            store.accept(new_solve(number), max_queued=100, reuse=True)
        database.begin(f"{1:012x}", executor_id="a", now=2.0)
        for number, state in ((2, "failed"), (3, "cancelled")):
            database.finish(f"{number:012x}", state=state, now=3.0)
        assert database.num_solves_by_state() == {"queued": 2, "running": 1, "failed": 1, "cancelled": 1}
        store.delete_solve(f"{2:012x}")
        assert "failed" not in database.num_solves_by_state()
