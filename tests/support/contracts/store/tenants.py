"""Tenants: nothing of one exists for another."""

from dataclasses import replace

import pytest

from api.store.access.audit import LOCAL
from api.store.access.keys import ApiKeyRecord
from api.store.database import Database, TenantStore
from api.store.maintenance.retention import PRUNED, Cutoffs
from api.store.models.activations import UnknownModel
from api.store.models.measurements import MeasurementsRecord
from api.store.models.statistics import StatisticsRecord
from api.store.plans.plans import UnknownPlan
from api.store.solves.idempotency import RequestKey
from tests.support.contracts.store.values import DIGEST, new_solve, plan, summary
from tests.support.contracts.store.webhooks import HOOK

STATISTICS = StatisticsRecord(digest=DIGEST, num_tables=1, num_lookups=1, created_at=1.0)

BATCH = MeasurementsRecord(
    digest=DIGEST, device="d", num_rows=1, source="benchmark", plan_digest=None, comparison=None, created_at=1.0
)

KEY = ApiKeyRecord(id="k", name="n", secret_digest="s", scopes=["read"], created_at=1.0)

ASKED = RequestKey(scope="/v1/solves", key="once", fingerprint="f", at=1.0)

SOLVE = new_solve(1).id


def publish(database: Database, store: TenantStore, number: int, *, name: str = "n", canonical: bytes = b"{}") -> None:
    """Solve something for a tenant; the plan is the same for all."""
    store.accept(new_solve(number, request="same"), max_queued=9, reuse=True, key=replace(ASKED, key=str(number)))
    solve_id = new_solve(number).id
    record = replace(plan(canonical=canonical), summary=replace(summary(1), name=name, plan_digest=DIGEST))
    assert database.finish(solve_id, state="succeeded", now=9.0, progress={"p": 1}, plan=record)


class TenantContract:
    """Two tenants that do the same."""

    def test_a_solve_is_there_for_its_tenant_alone(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        ours.accept(replace(new_solve(1), tags=["t"]), max_queued=9, reuse=True)
        database.begin(SOLVE, executor_id="e", now=2.0)
        database.save_incumbent(SOLVE, attempt=1, document=b"{}", progress={"p": 1}, now=3.0)
        assert ours.solve(SOLVE) == database.any_solve(SOLVE)
        assert ours.solve(SOLVE).tenant == "ours"
        assert [one.id for one in ours.solves(limit=9, before=None, state=None, tag="t")] == [SOLVE]
        assert len(ours.events(SOLVE, after=0)) == 1
        assert theirs.solve(SOLVE) is theirs.spec("request-1") is theirs.spec_of_problem("spec-1") is None
        for state, tag in ((None, None), ("running", None), (None, "t")):
            assert theirs.solves(limit=9, before=None, state=state, tag=tag) == []
        assert theirs.events(SOLVE, after=0) == []
        assert theirs.request_cancel(SOLVE, now=4.0) is None
        assert not ours.solve(SOLVE).cancel_requested
        database.finish(SOLVE, state="failed", now=5.0)
        assert theirs.delete_solve(SOLVE) is None
        assert ours.delete_solve(SOLVE) == "failed"

    def test_equal_requests_of_two_tenants_are_two_solves(self, database: Database) -> None:
        solves = [
            database.for_tenant(tenant).accept(new_solve(number, request="same"), max_queued=9, reuse=True)
            for number, tenant in enumerate(("ours", "theirs"))
        ]
        assert [(record.id, is_new) for record, is_new in solves] == [(new_solve(n).id, True) for n in (0, 1)]
        for number, tenant in enumerate(("ours", "theirs")):
            assert database.for_tenant(tenant).delete_solve(new_solve(number).id) == "queued"
            database.finish(new_solve(number).id, state="failed", now=1.0)
        assert database.for_tenant("ours").delete_solve(new_solve(0).id) == "failed"
        assert database.for_tenant("theirs").spec("same") is not None  # which both share

    def test_a_key_of_a_request_is_of_a_tenant(self, database: Database) -> None:
        for number, tenant in enumerate(("ours", "theirs")):
            own = database.for_tenant(tenant)
            assert own.made_by(ASKED) is None
            key = replace(ASKED, fingerprint=tenant)  # another request under the same key is nobody's concern
            assert own.accept(new_solve(number), max_queued=9, reuse=True, key=key)[1]
            assert own.made_by(key) == new_solve(number).id

    def test_a_plan_is_there_for_its_tenant_alone_with_its_own_bytes(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        publish(database, ours, 1, name="secret", canonical=b"ours")
        assert theirs.plan(DIGEST) is None
        assert theirs.plan_summaries(limit=9, before=None, name=None) == []
        with pytest.raises(UnknownPlan):
            theirs.plan_summaries(limit=9, before=DIGEST, name=None)
        with pytest.raises(UnknownPlan):
            theirs.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0)
        publish(database, theirs, 2, name="other", canonical=b"theirs")
        for own, canonical, name in ((ours, b"ours", "secret"), (theirs, b"theirs", "other")):
            assert own.plan(DIGEST).canonical == canonical
            assert [one.name for one in own.plan_summaries(limit=9, before=None, name=None)] == [name]

    def test_channels_of_one_name_are_two(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        for number, own in enumerate((ours, theirs)):
            publish(database, own, number)
        ours.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0)
        ours.put_channel("c", plan_digest=DIGEST, expected_version=1, now=2.0, members={8: DIGEST})
        assert database.for_tenant("nobody").sizes_of_plans([DIGEST]) == {}
        assert ours.sizes_of_plans([DIGEST]).keys() == {DIGEST}
        assert theirs.channel("c") is None
        assert theirs.channels(limit=9, after=None) == theirs.channel_versions("c", limit=9, before=None) == []
        assert theirs.put_channel("c", plan_digest=DIGEST, expected_version=0, now=3.0).version == 1
        assert theirs.channel("c").members == {}
        assert ours.channel("c").version == 2
        assert ours.channel("c").members == {8: DIGEST}
        assert len(ours.channel_versions("c", limit=9, before=None)) == 2

    def test_statistics_and_measurements(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        for number, own in enumerate((ours, theirs)):
            statistics, batch = replace(STATISTICS, created_at=float(number)), replace(BATCH, created_at=float(number))
            assert own.statistics(DIGEST) is own.measurements(DIGEST) is own.measurements_record(DIGEST) is None
            assert own.statistics_records(limit=9, after=None) == []
            assert own.measurements_records(limit=9, after=None, device=None) == []
            assert own.add_statistics(statistics, canonical=b"{}") == (statistics, True)
            assert own.add_measurements(batch, canonical=b"{}") == (batch, True)
            assert own.statistics_records(limit=9, after=None) == [statistics]
            assert own.measurements_records(limit=9, after=None, device="d") == [batch]

    def test_models_and_what_is_active(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        ours.add_model("m", digest=DIGEST, canonical=b"{}", device="d", figures={}, now=1.0)
        ours.activate("p", model_name="m", model_version=1, expected_version=0, now=2.0)
        fit = ours.add_fit("f", request={}, max_fitting=9, now=3.0)
        assert (fit.tenant, database.unended_fits()) == ("ours", [fit])
        assert theirs.models(limit=9, after=None) == theirs.activation_history("p") == []
        assert theirs.model("m", 1) is theirs.model_of_digest(DIGEST) is theirs.model_document(DIGEST) is None
        assert theirs.activation("p") is theirs.begin_fit("f", 1, max_attempts=9, now=4.0) is None
        assert not theirs.finish_fit("f", 1, now=4.0, error={"code": "c"})
        with pytest.raises(UnknownModel):
            theirs.activate("p", model_name="m", model_version=1, expected_version=0, now=5.0)
        again, is_new = theirs.add_model("m", digest=DIGEST, canonical=b"{}", device="d", figures={}, now=6.0)
        assert (again.version, again.tenant, is_new) == (1, "theirs", True)
        assert theirs.activate("p", model_name="m", model_version=1, expected_version=0, now=7.0).version == 1
        assert ours.activation("p").updated_at == 2.0

    def test_keys_and_the_trail(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        ours.add_api_key(KEY, by=LOCAL)
        assert ours.api_keys() == database.all_api_keys() == [replace(KEY, tenant="ours")]
        assert database.api_key("k").tenant == "ours"
        assert theirs.api_keys() == theirs.audit(limit=9, before=None, subject=None) == []
        assert theirs.revoke_api_key("k", by=LOCAL, now=2.0) is None
        assert database.api_key("k").revoked_at is None
        theirs.add_api_key(replace(KEY, id="other"), by=LOCAL)
        for own in (ours, theirs):  # numbers tell nobody how much others do
            assert [entry.seq for entry in own.audit(limit=9, before=None, subject=None)] == [1]

    def test_webhooks_are_of_a_tenant_and_reported_of_nothing_else(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        ours.add_webhook(HOOK, by=LOCAL)
        theirs.add_webhook(replace(HOOK, id="w2"), by=LOCAL)
        publish(database, ours, 1)
        ours.put_channel("c", plan_digest=DIGEST, expected_version=0, now=1.0)
        ours.accept(new_solve(2), max_queued=9, reuse=True)
        ours.request_cancel(new_solve(2).id, now=2.0)
        reported = ours.deliveries("w1", limit=9, before=None)
        assert {one.event for one in reported} == {"solve.succeeded", "channel.promoted", "solve.cancelled"}
        assert theirs.deliveries("w2", limit=9, before=None) == theirs.deliveries("w1", limit=9, before=None) == []
        assert (theirs.webhook("w1"), [one.id for one in theirs.webhooks()]) == (None, ["w2"])
        assert theirs.enable_webhook("w1", by=LOCAL, now=3.0) is theirs.resend("w1", reported[0].id) is None
        assert not theirs.delete_webhook("w1", by=LOCAL, now=3.0)
        (taken,) = database.take_deliveries(limit=9, lease_seconds=60)
        assert (taken.webhook_id, taken.tenant) == ("w1", "ours")
        assert ours.delete_webhook("w1", by=LOCAL, now=3.0)

    def test_retention_looks_at_each_tenant_by_itself(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        for number, own in enumerate((ours, theirs)):
            publish(database, own, number)
        ours.put_channel("c", plan_digest=DIGEST, expected_version=0, now=50.0)
        ours.put_channel("c", plan_digest=DIGEST, expected_version=1, now=60.0)
        theirs.add_api_key(KEY, by=LOCAL)  # an entry of the trail at 1.0, its last one
        everything = Cutoffs(request_keys=99.0, solves=99.0, events=99.0, plans=99.0, audit=55.0)
        assert database.num_old(everything) == {"request_keys": 2, "solves": 2, "events": 0, "plans": 1, "audit": 1}
        removed = {kind: database.prune(kind, everything, limit=9) for kind in PRUNED}
        assert (removed["plans"], removed["audit"]) == (1, 1)
        assert ours.plan(DIGEST) is not None  # which a channel names
        assert theirs.plan(DIGEST) is None
        assert [entry.seq for entry in ours.audit(limit=9, before=None, subject=None)] == [2]
        assert [entry.seq for entry in theirs.audit(limit=9, before=None, subject=None)] == [1]

    def test_what_no_one_is_named_for_is_of_default(self, database: Database) -> None:
        database.for_tenant("default").accept(new_solve(1), max_queued=9, reuse=True)
        assert database.any_solve(SOLVE).tenant == "default"
