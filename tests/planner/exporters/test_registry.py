"""Every export format is found by its name and writes canonical JSON."""

from planner.canonical import canonical_bytes
from planner.exporters.registry import EXPORTERS
from tests.planner.exporters.test_generic import document, small_plan


def test_every_format_writes_a_plan() -> None:
    plan = document(small_plan())
    for name, export in EXPORTERS.items():
        # Table b of the plan names no module.
        written = export(plan, module_path=None if name == "json" else "sparse.ebc", device="cuda")
        assert canonical_bytes(written)


def test_json_is_the_plan_as_it_is() -> None:
    plan = document(small_plan())
    assert EXPORTERS["json"](plan, module_path=None, device="cuda") == plan
