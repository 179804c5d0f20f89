"""Priorities, deadlines and tags of solves; and their deletion."""

from dataclasses import replace

import pytest

from api.store.database import Database, TenantStore
from api.store.plans.plans import PlanRecord
from api.store.solves.idempotency import RequestKey
from api.store.solves.records import SolveRecord
from tests.support.contracts.store.values import digest_of, new_solve, solve_id, summary

KEY = RequestKey(scope="/v1/solves", key="k", fingerprint="f", at=1000.0)


class SolveOptionsContract:
    """What a request has next to its spec."""

    def constraint(
        self, store: TenantStore, number: int, *, key: RequestKey | None = None, **constraints: object
    ) -> None:
        assert store.accept(replace(new_solve(number), **constraints), max_queued=100, reuse=False, key=key)[1]

    def begin(self, database: Database, number: int) -> SolveRecord:
        record = database.begin(solve_id(number), executor_id="a", now=1.0)
        assert record is not None
        return record

    def test_constraints_are_preserved(self, database: Database, store: TenantStore) -> None:
        self.constraint(store, 1, priority=-3, deadline_at=99.5, tags=["b", "a", "b"])
        self.constraint(store, 2)
        for found in (store.solve(solve_id(1)), store.solves(limit=9, before=None, state=None)[1]):
            assert (found.priority, found.deadline_at, found.tags) == (-3, 99.5, ("a", "b"))
        other = store.solve(solve_id(2))
        assert (other.priority, other.deadline_at, other.tags) == (0, None, ())
        assert self.begin(database, 1).deadline_at == 99.5
        assert [(found.priority, found.tags) for found in database.unended_solves()] == [(-3, ("a", "b")), (0, ())]

    def test_solves_are_found_by_tag(self, store: TenantStore) -> None:
        for number, tags in enumerate((["x"], ["x", "y"], ["y"], ["x"]), start=1):
            self.constraint(store, number, tags=tags)
        assert [found.id for found in store.solves(limit=2, before=None, state=None, tag="x")] == [
            solve_id(4),
            solve_id(2),
        ]
        assert [found.id for found in store.solves(limit=9, before=solve_id(2), state=None, tag="x")] == [solve_id(1)]
        assert store.solves(limit=9, before=None, state="running", tag="x") == []

    @pytest.mark.parametrize(("state", "answers"), [("succeeded", True), ("failed", False), (None, False)])
    def test_a_request_with_a_deadline_is_answered_by_what_has_succeeded_without(
        self, database: Database, store: TenantStore, state: str | None, answers: bool
    ) -> None:
        store.accept(new_solve(1, request="plain"), max_queued=9, reuse=True)
        if state is not None:
            database.finish(solve_id(1), state=state, now=1.0)
        urgent = replace(new_solve(2, request="urgent"), answered_by="plain", deadline_at=9.0)
        record, created = store.accept(urgent, max_queued=9, reuse=True)
        assert (record.id, created) == ((solve_id(1), False) if answers else (solve_id(2), True))

    def test_only_ended_solves_are_deleted(self, database: Database, store: TenantStore) -> None:
        self.constraint(store, 1)
        assert store.delete_solve(solve_id(1)) == "queued"
        self.begin(database, 1)
        assert store.delete_solve(solve_id(1)) == "running"
        assert store.solve(solve_id(1)) is not None
        assert store.delete_solve("nothing") is None

    def test_all_that_belongs_to_a_solve_goes_with_it(self, database: Database, store: TenantStore) -> None:
        self.constraint(store, 1, key=KEY, priority=1, tags=["x"])
        self.constraint(store, 2, tags=["x"])
        self.begin(database, 1)
        database.save_incumbent(solve_id(1), attempt=1, document=b"plan", progress={"a": 1}, now=2.0)
        database.finish(solve_id(1), state="failed", now=3.0)
        assert store.delete_solve(solve_id(1)) == "failed"
        assert store.solve(solve_id(1)) is None
        assert store.events(solve_id(1), after=0) == []
        assert store.made_by(KEY) is None
        assert store.spec("request-1") is None
        assert [found.id for found in store.solves(limit=9, before=None, state=None, tag="x")] == [solve_id(2)]
        assert store.spec("request-2") is not None

    def test_plans_and_the_specs_that_explain_them_stay(self, database: Database, store: TenantStore) -> None:
        self.constraint(store, 1)
        reported = summary(1)
        record = PlanRecord(
            digest=reported.plan_digest, canonical=b"{}", created_at=reported.created_at, summary=reported
        )
        database.finish(solve_id(1), state="succeeded", now=3.0, plan=record)
        store.delete_solve(solve_id(1))
        assert store.plan(digest_of(1)).canonical == b"{}"
        assert store.plan_summaries(limit=9, before=None, name=None) == [replace(reported, solve_id=None)]
        assert store.spec_of_problem("spec-1") == b'{"n":1}'

    def test_a_spec_stays_as_long_as_a_solve_has_it(self, database: Database, store: TenantStore) -> None:
        for number in (1, 2):
            store.accept(new_solve(number, request="same"), max_queued=9, reuse=False)
            database.finish(solve_id(number), state="failed", now=1.0)
        store.delete_solve(solve_id(1))
        assert store.spec("same") is not None
        store.delete_solve(solve_id(2))
        assert store.spec("same") is None
