"""Executors, and the removal of what is old."""

import time

import pytest

from api.store.database import Database, TenantStore
from api.store.maintenance.retention import EVENTS, PLANS, PRUNED, REQUEST_KEYS, SOLVES, Cutoffs
from api.store.models.measurements import MeasurementsRecord
from api.store.plans.plans import PlanRecord
from api.store.solves.idempotency import RequestKey
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.store.values import digest_of, new_solve, solve_id, summary


def ended(database: Database, number: int, *, at: float, plan: int | None = None, key: str | None = None) -> None:
    """A solve that found a plan (its own number, or another one) in two steps and ended at ``at``."""
    store = database.for_tenant(DEFAULT_TENANT)
    request_key = None if key is None else RequestKey(scope="s", key=key, fingerprint="f", at=at)
    store.accept(new_solve(number), max_queued=100, reuse=False, key=request_key)
    begun = database.begin(solve_id(number), executor_id="a", now=at - 2)
    assert begun is not None
    database.save_incumbent(solve_id(number), attempt=1, document=b"{}", progress={"step": 1}, now=at - 1)
    found = digest_of(number if plan is None else plan)
    record = PlanRecord(
        digest=found,
        canonical=b"{}",
        created_at=at,
        summary=summary(1, created_at=at, name="n", plan_digest=found, solve_id=solve_id(number)),
    )
    assert database.finish(
        solve_id(number), state="succeeded", now=at, result={"plan_digest": found}, plan=record, progress={"step": 2}
    )


def pruned(database: Database, before: Cutoffs, *, batch: int = 100) -> dict[str, int]:
    """Prune all kinds; what was foretold is what happens, and afterwards nothing is old."""
    foretold = database.num_old(before)
    removed = dict.fromkeys(PRUNED, 0)
    for kind in PRUNED:
        while number := database.prune(kind, before, limit=batch):
            assert number <= batch
            removed[kind] += number
    assert removed == foretold
    assert not any(database.num_old(before).values())
    return {kind: number for kind, number in removed.items() if number}


class MaintenanceContract:
    """Executors and retention, of all tenants."""

    def test_an_executor_lives_until_it_is_ended_or_replaced(self, database: Database) -> None:
        database.enter_executor("a", life="1", host="h")
        database.enter_executor("b", life="1", host="h")
        assert [(item.id, item.life, item.host) for item in database.executors()] == [("a", "1", "h"), ("b", "1", "h")]
        assert all(0 <= item.silent_seconds < 60 for item in database.executors())
        database.enter_executor("a", life="2", host="h")
        assert not database.beat("a", life="1")
        assert database.beat("a", life="2")
        assert not database.end_executor("a", life="1")
        assert database.end_executor("a", life="2")
        assert not database.beat("a", life="2")
        assert [item.id for item in database.executors()] == ["b"]

    def test_the_silence_of_an_executor_grows_until_it_is_heard_of(self, database: Database) -> None:
        database.enter_executor("a", life="1", host="h")
        time.sleep(0.3)
        (before,) = database.executors()
        assert before.silent_seconds >= 0.25
        database.beat("a", life="1")
        (after,) = database.executors()
        assert after.silent_seconds < before.silent_seconds

    def test_nothing_is_old_without_cutoffs(self, database: Database, store: TenantStore) -> None:
        ended(database, 1, at=10.0, key="k")
        store.put_channel("c", plan_digest=digest_of(1), expected_version=0, now=1.0)
        assert pruned(database, Cutoffs()) == {}
        assert store.solve(solve_id(1)) is not None

    def test_solves_that_ended_before_go_with_all_that_is_theirs(self, database: Database, store: TenantStore) -> None:
        ended(database, 1, at=10.0, key="k")
        ended(database, 2, at=20.0)
        store.accept(new_solve(3), max_queued=9, reuse=False)
        store.accept(new_solve(4), max_queued=9, reuse=False)
        database.begin(solve_id(4), executor_id="a", now=1.0)
        assert pruned(database, Cutoffs(solves=20.0)) == {SOLVES: 1}
        assert store.solve(solve_id(1)) is None
        assert store.events(solve_id(1), after=0) == []
        assert store.made_by(RequestKey(scope="s", key="k", fingerprint="f", at=10.0)) is None
        assert [store.solve(solve_id(number)).state for number in (2, 3, 4)] == ["succeeded", "queued", "running"]
        # The plan stays, and the spec that it was made for; nothing says of a solve that is gone.
        assert store.plan(digest_of(1)) is not None
        assert store.spec_of_problem("spec-1") is not None
        assert store.plan_summaries(limit=9, before=None, name=None)[-1].solve_id is None

    def test_waiting_and_running_solves_stay_however_old(self, database: Database, store: TenantStore) -> None:
        store.accept(new_solve(1), max_queued=9, reuse=False)
        store.accept(new_solve(2), max_queued=9, reuse=False)
        database.begin(solve_id(2), executor_id="a", now=1.0)
        database.save_incumbent(solve_id(2), attempt=1, document=b"{}", progress={"step": 1}, now=2.0)
        late = Cutoffs(solves=1e12, events=1e12, plans=1e12, request_keys=1e12, audit=1e12)
        assert pruned(database, late) == {}
        assert len(store.events(solve_id(2), after=0)) == 1

    def test_plans_go_once_nothing_needs_them_and_their_specs_with_them(
        self, database: Database, store: TenantStore
    ) -> None:
        for number in range(1, 7):
            ended(database, number, at=float(number))
        store.put_channel("now", plan_digest=digest_of(1), expected_version=0, now=1.0)
        members = {8: digest_of(2), 6: digest_of(8)}
        ended(database, 8, at=5.5)
        store.put_channel("moved", plan_digest=digest_of(2), expected_version=0, now=1.0, members=members)
        store.put_channel("moved", plan_digest=digest_of(1), expected_version=1, now=2.0)
        batch = MeasurementsRecord(
            digest="m", device="d", num_rows=1, source="jobs", plan_digest=digest_of(3), comparison=None, created_at=1.0
        )
        store.add_measurements(batch, canonical=b"[]")
        ended(database, 7, at=100.0, plan=4)  # a solve that is kept has found this one again
        assert pruned(database, Cutoffs(plans=50.0)) == {}  # all solves are kept
        assert pruned(database, Cutoffs(plans=6.0, solves=50.0)) == {SOLVES: 7, PLANS: 1}
        preserved = {number for number in (*range(1, 7), 8) if store.plan(digest_of(number)) is not None}
        assert preserved == {1, 2, 3, 4, 6, 8}  # of the fifth nobody knows; the sixth is not old yet
        assert {item.plan_digest for item in store.plan_summaries(limit=9, before=None, name=None)} == {
            digest_of(number) for number in preserved
        }
        assert store.spec_of_problem("spec-5") is None
        assert all(store.spec_of_problem(f"spec-{number}") is not None for number in preserved)
        assert store.channel("moved").plan_digest == digest_of(1)
        assert [item.version for item in store.channel_versions("moved", limit=9, before=None)] == [2, 1]

    def test_a_plan_stays_while_a_solve_has_no_plan_at_all(self, database: Database, store: TenantStore) -> None:
        """The result of an infeasible solve names no plan, and must not make all plans look needed, or none."""
        ended(database, 1, at=1.0)
        ended(database, 2, at=100.0)
        store.accept(new_solve(3), max_queued=9, reuse=False)
        database.finish(solve_id(3), state="succeeded", now=100.0, result={"reason": "INFEASIBLE"})
        assert pruned(database, Cutoffs(plans=1000.0, solves=50.0)) == {SOLVES: 1, PLANS: 1}
        assert store.plan(digest_of(2)) is not None

    def test_events_go_before_their_solves(self, database: Database, store: TenantStore) -> None:
        ended(database, 1, at=10.0)
        ended(database, 2, at=20.0)
        assert pruned(database, Cutoffs(events=15.0)) == {EVENTS: 2}
        assert store.events(solve_id(1), after=0) == []
        assert len(store.events(solve_id(2), after=0)) == 2
        assert store.solve(solve_id(1)).progress == {"step": 2}

    def test_keys_of_requests_go_by_their_own_time(self, database: Database, store: TenantStore) -> None:
        ended(database, 1, at=10.0, key="old")
        ended(database, 2, at=20.0, key="new")
        assert pruned(database, Cutoffs(request_keys=15.0)) == {REQUEST_KEYS: 1}
        assert store.made_by(RequestKey(scope="s", key="old", fingerprint="f", at=21.0)) is None
        assert store.made_by(RequestKey(scope="s", key="new", fingerprint="f", at=21.0)) == solve_id(2)

    @pytest.mark.parametrize(
        ("times", "cutoff", "preserved"),
        [
            ([1.0, 2.0, 3.0, 4.0], 3.0, [3, 4]),
            ([1.0, 2.0, 3.0, 4.0], 9.0, [4]),  # the last entry stays, so that numbers go on
            ([5.0, 1.0, 2.0, 6.0], 4.0, [1, 2, 3, 4]),  # a clock that was set back leaves no gap
        ],
    )
    def test_the_audit_trail_loses_its_beginning_alone(
        self, database: Database, store: TenantStore, times: list[float], cutoff: float, preserved: list[int]
    ) -> None:
        ended(database, 1, at=1.0)
        for version, at in enumerate(times):
            store.put_channel("c", plan_digest=digest_of(1), expected_version=version, now=at)
        pruned(database, Cutoffs(audit=cutoff))
        assert sorted(entry.seq for entry in store.audit(limit=9, before=None, subject=None)) == preserved
        store.put_channel("c", plan_digest=digest_of(1), expected_version=4, now=10.0)
        assert store.audit(limit=1, before=None, subject=None)[0].seq == 5

    def test_batches_come_to_the_same(self, database: Database) -> None:
        for number in range(1, 8):
            ended(database, number, at=float(number), key=f"k{number}")
        before = Cutoffs(solves=6.0, plans=5.0, events=8.0, request_keys=3.0)
        # Keys first, then solves with the keys that they have left, then events of those that stay.
        assert pruned(database, before, batch=2) == {REQUEST_KEYS: 2, SOLVES: 5, EVENTS: 4, PLANS: 4}

    def test_one_prunes_at_a_time(self, database: Database) -> None:
        with database.pruning() as first, database.pruning() as second:
            assert (first, second) == (True, False)
        with database.pruning() as again:
            assert again
