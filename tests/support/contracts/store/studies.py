"""Studies and their points: added once, ended once, never changed after that."""

import pytest

from api.store.database import Database, TenantStore
from api.store.maintenance.retention import PLANS, Cutoffs
from api.store.solves.idempotency import KeyReused, RequestKey
from api.store.solves.records import QueueFull
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.store.values import DIGEST, plan, publish

STUDY, OTHER = "0" * 27 + "1", "0" * 27 + "2"
KEY = RequestKey(scope="/v1/studies", key="once", fingerprint="f", at=1.0)
OUTCOME = {"state": "planned", "plan_digest": DIGEST}


def add(store: TenantStore, study_id: str = STUDY, *, key: RequestKey | None = None, max_unended: int = 9) -> bool:
    fields = {"kind": "sweep", "name": "n", "document": b"{}", "max_unended": max_unended, "now": 1.0, "key": key}
    return store.add_study(study_id, **fields)[1]


class StudyContract:
    """What holds of studies in every database."""

    def test_a_study_runs_and_ends_once(self, database: Database) -> None:
        store = database.for_tenant("ours")
        assert add(store)
        assert database.unended_studies() == [STUDY]
        begun = database.begin_study(STUDY, now=2.0)
        assert (begun.state, begun.attempts, begun.started_at) == ("running", 1, 2.0)
        assert database.begin_study(STUDY, now=3.0).started_at == 2.0
        assert database.any_study_request(STUDY) == b"{}"
        database.add_point(STUDY, "a", labels={"x": "1"}, solve_id="s", is_own=True)
        database.add_point(STUDY, "a", labels={"x": "2"}, solve_id="t", is_own=False)  # it is there already
        database.add_point(STUDY, "b", labels={}, solve_id=None, is_own=False, outcome={"state": "invalid"})
        database.end_point(STUDY, "a", outcome=OUTCOME, plan_digest=DIGEST)
        database.end_point(STUDY, "a", outcome={"state": "failed"}, plan_digest=None)  # it has ended already
        points = database.points_of(STUDY)
        assert [(one.key, one.labels, one.solve_id, one.is_own) for one in points] == [
            ("a", {"x": "1"}, "s", True),
            ("b", {}, None, False),
        ]
        assert [one.outcome for one in points] == [OUTCOME, {"state": "invalid"}]
        record = store.study(STUDY)
        assert (record.num_points, record.num_ended) == (2, 2)
        assert database.ended_studies([STUDY]) == set()
        assert database.finish_study(STUDY, state="succeeded", now=5.0, answer={"front": []})
        assert not database.finish_study(STUDY, state="failed", now=6.0)
        assert database.begin_study(STUDY, now=7.0) is None
        database.add_point(STUDY, "c", labels={}, solve_id="u", is_own=True)  # it has ended
        assert len(store.points(STUDY)) == 2
        assert database.ended_studies([STUDY, OTHER]) == {STUDY}
        assert (store.study(STUDY).state, store.study(STUDY).answer) == ("succeeded", {"front": []})
        assert store.studies(limit=9, before=None)[0].answer is None
        assert database.unended_studies() == []

    def test_cancelling_ends_what_waits_and_marks_what_runs(self, database: Database) -> None:
        store = database.for_tenant("ours")
        add(store)
        assert store.request_study_cancel(STUDY, now=2.0).state == "cancelled"
        add(store, OTHER)
        database.begin_study(OTHER, now=2.0)
        assert store.delete_study(OTHER) == "running"
        running = store.request_study_cancel(OTHER, now=3.0)
        assert (running.state, running.cancel_requested) == ("running", True)
        assert store.request_study_cancel("0" * 28, now=3.0) is None

    def test_a_key_makes_one_study_and_the_queue_is_bounded(self, database: Database) -> None:
        store = database.for_tenant("ours")
        assert add(store, key=KEY)
        assert not add(store, OTHER, key=KEY)
        assert store.study_made_by(KEY).id == STUDY
        assert store.study_made_by(None) is None
        with pytest.raises(KeyReused):
            store.study_made_by(RequestKey(scope=KEY.scope, key=KEY.key, fingerprint="g", at=1.0))
        with pytest.raises(QueueFull):
            add(store, OTHER, max_unended=1)
        assert add(database.for_tenant("theirs"), OTHER, max_unended=1)  # whose studies are counted apart

    def test_a_study_is_there_for_its_tenant_alone(self, database: Database) -> None:
        ours, theirs = database.for_tenant("ours"), database.for_tenant("theirs")
        add(ours, key=KEY)
        database.begin_study(STUDY, now=2.0)
        database.add_point(STUDY, "a", labels={}, solve_id="s", is_own=True)
        assert theirs.study(STUDY) is theirs.study_request(STUDY) is theirs.study_made_by(KEY) is None
        assert theirs.studies(limit=9, before=None) == theirs.points(STUDY) == []
        assert theirs.request_study_cancel(STUDY, now=3.0) is theirs.delete_study(STUDY) is None
        assert ours.study_request(STUDY) == b"{}"
        assert len(ours.points(STUDY)) == 1
        database.finish_study(STUDY, state="succeeded", now=4.0)
        assert ours.delete_study(STUDY) == "succeeded"
        assert ours.study(STUDY) is None
        assert ours.points(STUDY) == []

    def test_plans_of_points_remain(self, database: Database) -> None:
        publish(database, 1, plan())
        store = database.for_tenant(DEFAULT_TENANT)
        assert database.num_old(Cutoffs(plans=99.0))[PLANS] == 1
        add(store)
        database.begin_study(STUDY, now=2.0)
        database.add_point(STUDY, "a", labels={}, solve_id="s", is_own=True)
        database.end_point(STUDY, "a", outcome=OUTCOME, plan_digest=DIGEST)
        assert database.num_old(Cutoffs(plans=99.0))[PLANS] == 0
        database.finish_study(STUDY, state="succeeded", now=3.0)
        store.delete_study(STUDY)
        assert database.num_old(Cutoffs(plans=99.0))[PLANS] == 1
