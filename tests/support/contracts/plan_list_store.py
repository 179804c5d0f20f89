"""What every store promises of lists of plans; each one's test class inherits this."""

from dataclasses import replace

import pytest

from api.store.database import TenantStore
from api.store.plans.plans import PlanRecord, PlanSummary, UnknownPlan
from tests.support.contracts.store import new_solve


def digest_of(number: int) -> str:
    return f"sha256:{number:064x}"


def summary(number: int, **changes: object) -> PlanSummary:
    made = PlanSummary(
        plan_digest=digest_of(number),
        name=f"name-{number % 2}",
        created_at=float(number),
        world_size=8,
        hardware_profile="h",
        cost_model="roofline@1",
        objective_name="step_time",
        objective_seconds=2.0,
        lower_bound_seconds=1.0,
        relative_gap=1.0,
        solve_id=f"{number:012x}",
    )
    return replace(made, **changes)


class PlanListStoreContract:
    """Subclasses give a fixture ``store``."""

    def publish_listed(self, store: TenantStore, number: int, told: PlanSummary) -> None:
        store.accept(new_solve(number), max_queued=100, reuse=True)
        record = PlanRecord(digest=told.plan_digest, canonical=b"{}", created_at=told.created_at, summary=told)
        assert store.finish(f"{number:012x}", state="succeeded", now=9.0, plan=record)

    def test_plans_are_listed_newest_first_and_paged(self, store: TenantStore) -> None:
        # Two at the same time: their digests decide.
        told = [summary(1), summary(2, created_at=5.0), summary(3, created_at=5.0), summary(4)]
        for number, one in enumerate(told, start=1):
            self.publish_listed(store, number, one)
        expected = [told[2], told[1], told[3], told[0]]
        assert store.plan_summaries(limit=9, before=None, name=None) == expected
        paged: list[PlanSummary] = []
        while page := store.plan_summaries(limit=1, before=paged[-1].plan_digest if paged else None, name=None):
            paged += page
        assert paged == expected
        assert store.plan_summaries(limit=9, before=None, name="name-0") == [told[1], told[3]]
        assert store.plan_summaries(limit=9, before=told[1].plan_digest, name="name-0") == [told[3]]
        assert store.plan_summaries(limit=9, before=None, name="nothing") == []

    def test_the_first_publication_is_listed(self, store: TenantStore) -> None:
        self.publish_listed(store, 1, summary(1))
        self.publish_listed(store, 2, summary(1, name="again", created_at=9.0, solve_id=f"{2:012x}"))
        assert store.plan_summaries(limit=9, before=None, name=None) == [summary(1)]

    def test_a_solve_that_had_ended_lists_nothing(self, store: TenantStore) -> None:
        store.accept(new_solve(1), max_queued=100, reuse=True)
        store.finish(f"{1:012x}", state="failed", now=1.0)
        record = PlanRecord(digest=digest_of(1), canonical=b"{}", created_at=1.0, summary=summary(1))
        assert not store.finish(f"{1:012x}", state="succeeded", now=2.0, plan=record)
        assert store.plan_summaries(limit=9, before=None, name=None) == []

    def test_pages_after_plans_that_are_not_there(self, store: TenantStore) -> None:
        with pytest.raises(UnknownPlan):
            store.plan_summaries(limit=9, before=digest_of(1), name=None)
