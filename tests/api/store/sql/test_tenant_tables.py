"""Whoever adds a table, or a way to read one, has to say whose its rows are."""

from pathlib import Path

from api.store.database import Database, TenantStore
from api.store.sql import tables

#: Tables without a tenant, and why none of them needs one.
SHARED = {
    "specs": "found by a digest of every byte, through solves and plans of a tenant",
    "cost_model_documents": "found by a digest of every byte, through models of a tenant",
    "solve_requests": "found through a solve of a tenant",
    "solve_tags": "found through a solve of a tenant",
    "solve_events": "found through a solve of a tenant",
    "study_points": "found through a study of a tenant",
    "webhook_deliveries": "found through a webhook of a tenant",
    "executors": "servers and workers, which run the work of all",
}


def methods(side: type) -> set[str]:
    return {name for name in dir(side) if not name.startswith("_")}


def test_every_table_has_a_tenant_or_a_reason() -> None:
    assert {name for name, table in tables.metadata.tables.items() if "tenant" not in table.c} == set(SHARED)


def test_every_method_of_a_store_is_tried_with_two_tenants(root: Path) -> None:
    assert len(methods(TenantStore)) > 30
    folder = root / "tests" / "support" / "contracts" / "store"
    text = "".join((folder / name).read_text() for name in ("tenants.py", "studies.py"))
    assert {name for name in methods(TenantStore) if f".{name}(" not in text} == {"ping"}


def test_the_side_of_all_tenants_has_no_method_of_one_tenant() -> None:
    assert methods(Database) & methods(TenantStore) == {"ping"}
