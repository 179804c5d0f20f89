"""What every store promises of its numbers; each one's test class inherits this."""

from api.store.database import TenantStore
from tests.support.contracts.store import new_solve


class CountStoreContract:
    """Subclasses give a fixture ``store``."""

    def test_solves_are_counted_by_state(self, store: TenantStore) -> None:
        assert store.num_solves_by_state() == {}
        for number in range(1, 6):
            store.accept(new_solve(number), max_queued=100, reuse=True)
        store.begin(f"{1:012x}", executor_id="a", now=2.0)
        for number, state in ((2, "failed"), (3, "cancelled")):
            store.finish(f"{number:012x}", state=state, now=3.0)
        assert store.num_solves_by_state() == {"queued": 2, "running": 1, "failed": 1, "cancelled": 1}
        store.delete_solve(f"{2:012x}")
        assert "failed" not in store.num_solves_by_state()

    def test_versions_of_models_are_counted_by_state(self, store: TenantStore) -> None:
        assert store.num_models_by_state() == {}
        for name in ("one", "two"):
            store.add_fit(name, request={"seed": 0}, max_fitting=9, now=1.0)
        store.finish_fit("one", 1, now=2.0, error={"code": "cancelled"})
        assert store.num_models_by_state() == {"fitting": 1, "failed": 1}
