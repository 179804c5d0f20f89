"""Published plans, their lists, and channels."""

import pytest

from api.store.access.audit import PROMOTE, ROLLBACK, Actor
from api.store.database import Database, TenantStore
from api.store.plans.channels import VersionConflict
from api.store.plans.plans import PlanRecord, PlanSummary, UnknownPlan
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.race import race
from tests.support.contracts.store.values import DIGEST, OTHER, digest_of, new_solve, plan, publish, summary


class PlanContract:
    """Plans and channels of one tenant."""

    def publish_listed(self, database: Database, number: int, reported: PlanSummary) -> None:
        store = database.for_tenant(DEFAULT_TENANT)
        store.accept(new_solve(number), max_queued=100, reuse=True)
        record = PlanRecord(
            digest=reported.plan_digest, canonical=b"{}", created_at=reported.created_at, summary=reported
        )
        assert database.finish(f"{number:012x}", state="succeeded", now=9.0, plan=record)

    def test_plans_are_listed_newest_first_and_paged(self, database: Database, store: TenantStore) -> None:
        # Two at the same time: their digests decide.
        reported = [summary(1), summary(2, created_at=5.0), summary(3, created_at=5.0), summary(4)]
        for number, one in enumerate(reported, start=1):
            self.publish_listed(database, number, one)
        expected = [reported[2], reported[1], reported[3], reported[0]]
        assert store.plan_summaries(limit=9, before=None, name=None) == expected
        paged: list[PlanSummary] = []
        while page := store.plan_summaries(limit=1, before=paged[-1].plan_digest if paged else None, name=None):
            paged += page
        assert paged == expected
        assert store.plan_summaries(limit=9, before=None, name="name-0") == [reported[1], reported[3]]
        assert store.plan_summaries(limit=9, before=reported[1].plan_digest, name="name-0") == [reported[3]]
        assert store.plan_summaries(limit=9, before=None, name="nothing") == []

    def test_the_first_publication_is_listed(self, database: Database, store: TenantStore) -> None:
        self.publish_listed(database, 1, summary(1))
        self.publish_listed(database, 2, summary(1, name="again", created_at=9.0, solve_id=f"{2:012x}"))
        assert store.plan_summaries(limit=9, before=None, name=None) == [summary(1)]

    def test_a_solve_that_had_ended_lists_nothing(self, database: Database, store: TenantStore) -> None:
        store.accept(new_solve(1), max_queued=100, reuse=True)
        database.finish(f"{1:012x}", state="failed", now=1.0)
        record = PlanRecord(digest=digest_of(1), canonical=b"{}", created_at=1.0, summary=summary(1))
        assert not database.finish(f"{1:012x}", state="succeeded", now=2.0, plan=record)
        assert store.plan_summaries(limit=9, before=None, name=None) == []

    def test_pages_after_plans_that_are_not_there(self, store: TenantStore) -> None:
        with pytest.raises(UnknownPlan):
            store.plan_summaries(limit=9, before=digest_of(1), name=None)

    def test_a_channel_moves_only_from_the_version_that_is_named(self, database: Database, store: TenantStore) -> None:
        publish(database, 1, plan())
        publish(database, 2, plan(OTHER))
        assert store.channel("c") is None
        assert store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0).version == 1
        with pytest.raises(VersionConflict) as caught:
            store.put_channel("c", plan_digest=OTHER, expected_version=0, now=2.0)
        assert caught.value.current == store.channel("c")
        assert store.put_channel("c", plan_digest=OTHER, expected_version=1, now=3.0).version == 2
        history = store.channel_versions("c", limit=9, before=None)
        assert [(item.version, item.plan_digest) for item in history] == [(2, OTHER), (1, DIGEST)]

    def test_versions_say_who_made_them_and_what_they_brought_back(
        self, database: Database, store: TenantStore
    ) -> None:
        publish(database, 1, plan())
        store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0, by=Actor(who="ann"))
        store.put_channel("c", plan_digest=DIGEST, expected_version=1, now=2.0, action=ROLLBACK, restored_version=1)
        history = store.channel_versions("c", limit=9, before=None)
        assert [(item.who, item.action, item.restored_version, item.origin) for item in history] == [
            ("local", ROLLBACK, 1, 1),
            ("ann", PROMOTE, None, 1),
        ]

    def test_versions_keep_their_plans_by_world_size(self, database: Database, store: TenantStore) -> None:
        publish(database, 1, plan())
        publish(database, 2, plan(OTHER))
        members = {8: DIGEST, 6: OTHER}
        assert (
            store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0, members=members).members == members
        )
        assert store.channel("c").members == members
        store.put_channel("c", plan_digest=OTHER, expected_version=1, now=2.0)
        store.put_channel("d", plan_digest=DIGEST, expected_version=0, now=3.0)
        assert store.channel("c").members == store.channel("d").members == {}
        history = store.channel_versions("c", limit=9, before=None)
        assert [item.members for item in history] == [{}, members]
        with pytest.raises(UnknownPlan):
            store.put_channel("d", plan_digest=DIGEST, expected_version=1, now=4.0, members={8: DIGEST, 6: "sha256:x"})
        assert [item.members for item in store.channels(limit=9, after=None)] == [{}, {}]

    def test_versions_of_a_channel_are_paged_newest_first(self, database: Database, store: TenantStore) -> None:
        publish(database, 1, plan())
        for version in range(3):
            store.put_channel("c", plan_digest=DIGEST, expected_version=version, now=float(version))
        store.put_channel("d", plan_digest=DIGEST, expected_version=0, now=9.0)
        first = store.channel_versions("c", limit=2, before=None)
        assert [(item.version, item.updated_at) for item in first] == [(3, 2.0), (2, 1.0)]
        assert [item.version for item in store.channel_versions("c", limit=9, before=2)] == [1]
        assert store.channel_versions("nothing", limit=9, before=None) == []

    def test_a_channel_cannot_point_at_nothing(self, store: TenantStore) -> None:
        with pytest.raises(UnknownPlan):
            store.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0)
        assert store.channel("c") is None

    def test_racing_promoters_make_a_line(self, database: Database, store: TenantStore) -> None:
        publish(database, 1, plan())

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

    def test_names_are_sorted_by_their_bytes(self, database: Database, store: TenantStore) -> None:
        publish(database, 1, plan())
        names = ["b", "a_b", "a-b", "a/b", "a.b", "ab", "0"]
        for name in names:
            store.put_channel(name, plan_digest=DIGEST, expected_version=0, now=1.0)
        assert [item.name for item in store.channels(limit=9, after=None)] == sorted(names)
