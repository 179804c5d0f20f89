"""The types of the launcher's client are those of the definition."""

from pathlib import Path

from api.client.plan_types import PlanDocument, ShardDocument, TableDocument
from api.http.openapi.client_types import client_types_text, compact_form_text, reshard_bands_text


def test_the_committed_file_is_up_to_date(root: Path) -> None:
    committed = (root / "api" / "client" / "plan_types.py").read_text(encoding="utf-8")
    assert committed == client_types_text(), "run: make generated"


def test_the_client_expands_plans_as_the_planner_does(root: Path) -> None:
    committed = (root / "api" / "client" / "compact_form.py").read_text(encoding="utf-8")
    assert committed == compact_form_text(), "run: make generated"


def test_the_client_reads_checkpoints_as_the_planner_does(root: Path) -> None:
    committed = (root / "api" / "client" / "reshard_bands.py").read_text(encoding="utf-8")
    assert committed == reshard_bands_text(), "run: make generated"


def test_a_launcher_needs_what_determines_training() -> None:
    cluster = {"world_size", "ranks_per_host"}
    assert PlanDocument.__required_keys__ == {"schema_version", "plan_digest", "spec_digest", "tables", *cluster}
    assert TableDocument.__required_keys__ == {"name", "sharding_type", "compute_kernel", "shards"}
    assert ShardDocument.__optional_keys__ == {"bytes"}
