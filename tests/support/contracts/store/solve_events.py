"""Events of solves."""

from api.store.database import Database, TenantStore
from api.store.solves.records import MAX_EVENTS, EventRecord, SolveMark
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.store.values import new_solve

SOLVE = f"{1:012x}"

OTHER = f"{2:012x}"


def running(database: Database, *solves: int) -> None:
    store = database.for_tenant(DEFAULT_TENANT)
    for number in solves:
        store.accept(new_solve(number), max_queued=100, reuse=True)
        database.begin(f"{number:012x}", executor_id="a", now=10.0)


def found(database: Database, solve_id: str, seconds: float, *, now: float) -> None:
    database.save_incumbent(solve_id, attempt=1, document=b"plan", progress={"incumbent_seconds": seconds}, now=now)


class SolveEventContract:
    """Better plans, while a solve runs."""

    def test_better_plans_are_numbered_events(self, database: Database, store: TenantStore) -> None:
        running(database, 1, 2)
        found(database, SOLVE, 3.0, now=10.5)
        found(database, OTHER, 9.0, now=11.0)
        found(database, SOLVE, 2.0, now=12.0)
        first, second = store.events(SOLVE, after=0)
        assert first == EventRecord(seq=1, at=10.5, at_seconds=0.5, document={"incumbent_seconds": 3.0})
        assert (second.seq, second.at_seconds, second.document) == (2, 2.0, {"incumbent_seconds": 2.0})
        assert store.events(SOLVE, after=1) == [second]
        assert store.events(SOLVE, after=2) == store.events("nothing", after=0) == []

    def test_a_solve_that_does_not_run_finds_nothing(self, database: Database, store: TenantStore) -> None:
        store.accept(new_solve(1), max_queued=100, reuse=True)
        found(database, SOLVE, 3.0, now=10.5)
        assert store.events(SOLVE, after=0) == []

    def test_the_end_of_a_solve_is_an_event_where_it_says_something_new(
        self, database: Database, store: TenantStore
    ) -> None:
        running(database, 1, 2)
        for solve_id, last in ((SOLVE, 3.0), (OTHER, 2.5)):
            found(database, solve_id, 3.0, now=11.0)
            database.finish(solve_id, state="succeeded", now=12.0, progress={"incumbent_seconds": last})
            database.finish(solve_id, state="succeeded", now=13.0, progress={"incumbent_seconds": 0.0})  # ended already
        assert [event.document["incumbent_seconds"] for event in store.events(SOLVE, after=0)] == [3.0]
        assert [event.document["incumbent_seconds"] for event in store.events(OTHER, after=0)] == [3.0, 2.5]

    def test_a_clock_that_is_set_back_makes_no_negative_times(self, database: Database, store: TenantStore) -> None:
        running(database, 1)
        found(database, SOLVE, 3.0, now=5.0)
        found(database, SOLVE, 2.0, now=14.0)
        found(database, SOLVE, 1.0, now=12.0)
        assert [event.at_seconds for event in store.events(SOLVE, after=0)] == [0.0, 4.0, 4.0]

    def test_a_log_is_bounded_and_its_numbers_are_not(self, database: Database, store: TenantStore) -> None:
        running(database, 1)
        for number in range(MAX_EVENTS + 3):
            found(database, SOLVE, 1e6 - number, now=11.0)
        events = store.events(SOLVE, after=0)
        assert len(events) == MAX_EVENTS
        assert [event.seq for event in events] == [*range(1, MAX_EVENTS), MAX_EVENTS + 3]
        assert events[-1].document == {"incumbent_seconds": 1e6 - MAX_EVENTS - 2}
        assert store.events(SOLVE, after=MAX_EVENTS) == events[-1:]  # whoever saw the one that was replaced

    def test_marks_report_state_and_last_event(self, database: Database, store: TenantStore) -> None:
        running(database, 1)
        found(database, SOLVE, 3.0, now=11.0)
        store.accept(new_solve(2), max_queued=100, reuse=True)
        marks = database.marks({SOLVE, OTHER, "nothing"})
        assert marks == {SOLVE: SolveMark(state="running", last_seq=1), OTHER: SolveMark(state="queued", last_seq=0)}
        assert database.marks([]) == {}
