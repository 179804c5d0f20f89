"""What every store promises of the end of what is old."""

import pytest

from api.store.database import TenantStore
from api.store.maintenance.retention import EVENTS, PLANS, PRUNED, REQUEST_KEYS, SOLVES, Cutoffs
from api.store.models.measurements import MeasurementsRecord
from api.store.plans.plans import PlanRecord
from api.store.solves.idempotency import RequestKey
from tests.support.contracts.plan_list_store import summary
from tests.support.contracts.store import new_solve


def digest(number: int) -> str:
    return "sha256:" + f"{number:064x}"


def solve_id(number: int) -> str:
    return f"{number:012x}"


def ended(store: TenantStore, number: int, *, at: float, plan: int | None = None, key: str | None = None) -> None:
    """A solve that found a plan (its own number, or another one) in two steps and ended at ``at``."""
    request_key = None if key is None else RequestKey(scope="s", key=key, fingerprint="f", at=at)
    store.accept(new_solve(number), max_queued=100, reuse=False, key=request_key)
    begun = store.begin(solve_id(number), executor_id="a", now=at - 2)
    assert begun is not None
    store.keep_incumbent(solve_id(number), attempt=1, document=b"{}", progress={"step": 1}, now=at - 1)
    found = digest(number if plan is None else plan)
    record = PlanRecord(
        digest=found,
        canonical=b"{}",
        created_at=at,
        summary=summary(1, created_at=at, name="n", plan_digest=found, solve_id=solve_id(number)),
    )
    assert store.finish(
        solve_id(number), state="succeeded", now=at, result={"plan_digest": found}, plan=record, progress={"step": 2}
    )


def pruned(store: TenantStore, before: Cutoffs, *, batch: int = 100) -> dict[str, int]:
    """Prune all kinds; what was foretold is what happens, and afterwards nothing is old."""
    foretold = store.num_old(before)
    removed = dict.fromkeys(PRUNED, 0)
    for kind in PRUNED:
        while number := store.prune(kind, before, limit=batch):
            assert number <= batch
            removed[kind] += number
    assert removed == foretold
    assert not any(store.num_old(before).values())
    return {kind: number for kind, number in removed.items() if number}


class RetentionStoreContract:
    """Subclasses give a fixture ``store``."""

    def test_nothing_is_old_without_cutoffs(self, store: TenantStore) -> None:
        ended(store, 1, at=10.0, key="k")
        store.put_channel("c", plan_digest=digest(1), expected_version=0, now=1.0)
        assert pruned(store, Cutoffs()) == {}
        assert store.solve(solve_id(1)) is not None

    def test_solves_that_ended_before_go_with_all_that_is_theirs(self, store: TenantStore) -> None:
        ended(store, 1, at=10.0, key="k")
        ended(store, 2, at=20.0)
        store.accept(new_solve(3), max_queued=9, reuse=False)
        store.accept(new_solve(4), max_queued=9, reuse=False)
        store.begin(solve_id(4), executor_id="a", now=1.0)
        assert pruned(store, Cutoffs(solves=20.0)) == {SOLVES: 1}
        assert store.solve(solve_id(1)) is None
        assert store.events(solve_id(1), after=0) == []
        assert store.made_by(RequestKey(scope="s", key="k", fingerprint="f", at=10.0)) is None
        assert [store.solve(solve_id(number)).state for number in (2, 3, 4)] == ["succeeded", "queued", "running"]
        # The plan stays, and the spec that it was made for; nothing says of a solve that is gone.
        assert store.plan(digest(1)) is not None
        assert store.spec_of_problem("spec-1") is not None
        assert store.plan_summaries(limit=9, before=None, name=None)[-1].solve_id is None

    def test_waiting_and_running_solves_stay_however_old(self, store: TenantStore) -> None:
        store.accept(new_solve(1), max_queued=9, reuse=False)
        store.accept(new_solve(2), max_queued=9, reuse=False)
        store.begin(solve_id(2), executor_id="a", now=1.0)
        store.keep_incumbent(solve_id(2), attempt=1, document=b"{}", progress={"step": 1}, now=2.0)
        late = Cutoffs(solves=1e12, events=1e12, plans=1e12, request_keys=1e12, audit=1e12)
        assert pruned(store, late) == {}
        assert len(store.events(solve_id(2), after=0)) == 1

    def test_plans_go_once_nothing_needs_them_and_their_specs_with_them(self, store: TenantStore) -> None:
        for number in range(1, 7):
            ended(store, number, at=float(number))
        store.put_channel("now", plan_digest=digest(1), expected_version=0, now=1.0)
        store.put_channel("moved", plan_digest=digest(2), expected_version=0, now=1.0)
        store.put_channel("moved", plan_digest=digest(1), expected_version=1, now=2.0)
        batch = MeasurementsRecord(
            digest="m", device="d", num_rows=1, source="jobs", plan_digest=digest(3), comparison=None, created_at=1.0
        )
        store.keep_measurements(batch, canonical=b"[]")
        ended(store, 7, at=100.0, plan=4)  # a solve that is kept has found this one again
        assert pruned(store, Cutoffs(plans=50.0)) == {}  # all solves are kept
        assert pruned(store, Cutoffs(plans=6.0, solves=50.0)) == {SOLVES: 6, PLANS: 1}
        kept = {number for number in range(1, 7) if store.plan(digest(number)) is not None}
        assert kept == {1, 2, 3, 4, 6}  # of the fifth nobody knows; the sixth is not old yet
        assert {item.plan_digest for item in store.plan_summaries(limit=9, before=None, name=None)} == {
            digest(number) for number in kept
        }
        assert store.spec_of_problem("spec-5") is None
        assert all(store.spec_of_problem(f"spec-{number}") is not None for number in kept)
        assert store.channel("moved").plan_digest == digest(1)
        assert [item.version for item in store.channel_versions("moved", limit=9, before=None)] == [2, 1]

    def test_a_plan_stays_while_a_solve_has_no_plan_at_all(self, store: TenantStore) -> None:
        """The result of an infeasible solve names no plan, and must not make all plans look needed, or none."""
        ended(store, 1, at=1.0)
        ended(store, 2, at=100.0)
        store.accept(new_solve(3), max_queued=9, reuse=False)
        store.finish(solve_id(3), state="succeeded", now=100.0, result={"reason": "INFEASIBLE"})
        assert pruned(store, Cutoffs(plans=1000.0, solves=50.0)) == {SOLVES: 1, PLANS: 1}
        assert store.plan(digest(2)) is not None

    def test_events_go_before_their_solves(self, store: TenantStore) -> None:
        ended(store, 1, at=10.0)
        ended(store, 2, at=20.0)
        assert pruned(store, Cutoffs(events=15.0)) == {EVENTS: 2}
        assert store.events(solve_id(1), after=0) == []
        assert len(store.events(solve_id(2), after=0)) == 2
        assert store.solve(solve_id(1)).progress == {"step": 2}

    def test_keys_of_requests_go_by_their_own_time(self, store: TenantStore) -> None:
        ended(store, 1, at=10.0, key="old")
        ended(store, 2, at=20.0, key="new")
        assert pruned(store, Cutoffs(request_keys=15.0)) == {REQUEST_KEYS: 1}
        assert store.made_by(RequestKey(scope="s", key="old", fingerprint="f", at=21.0)) is None
        assert store.made_by(RequestKey(scope="s", key="new", fingerprint="f", at=21.0)) == solve_id(2)

    @pytest.mark.parametrize(
        ("times", "cutoff", "kept"),
        [
            ([1.0, 2.0, 3.0, 4.0], 3.0, [3, 4]),
            ([1.0, 2.0, 3.0, 4.0], 9.0, [4]),  # the last entry stays, so that numbers go on
            ([5.0, 1.0, 2.0, 6.0], 4.0, [1, 2, 3, 4]),  # a clock that was set back leaves no gap
        ],
    )
    def test_the_audit_trail_loses_its_beginning_alone(
        self, store: TenantStore, times: list[float], cutoff: float, kept: list[int]
    ) -> None:
        ended(store, 1, at=1.0)
        for version, at in enumerate(times):
            store.put_channel("c", plan_digest=digest(1), expected_version=version, now=at)
        pruned(store, Cutoffs(audit=cutoff))
        assert sorted(entry.seq for entry in store.audit(limit=9, before=None, subject=None)) == kept
        store.put_channel("c", plan_digest=digest(1), expected_version=4, now=10.0)
        assert store.audit(limit=1, before=None, subject=None)[0].seq == 5

    def test_batches_come_to_the_same(self, store: TenantStore) -> None:
        for number in range(1, 8):
            ended(store, number, at=float(number), key=f"k{number}")
        before = Cutoffs(solves=6.0, plans=5.0, events=8.0, request_keys=3.0)
        # Keys first, then solves with the keys that they have left, then events of those that stay.
        assert pruned(store, before, batch=2) == {REQUEST_KEYS: 2, SOLVES: 5, EVENTS: 4, PLANS: 4}

    def test_one_prunes_at_a_time(self, store: TenantStore) -> None:
        with store.pruning() as first, store.pruning() as second:
            assert (first, second) == (True, False)
        with store.pruning() as again:
            assert again
