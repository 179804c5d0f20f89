"""Every export format is found by its name and writes canonical JSON."""

from planner.canonical import canonical_bytes
from planner.exporters.facts import ExportFacts
from planner.exporters.registry import EXPORTERS, exporter_of, reads_facts
from tests.planner.exporters.test_generic import document, small_plan
from tests.planner.exporters.test_sparsecore import A
from tests.planner.exporters.test_sparsecore import document as row_wise_document


def test_every_format_writes_a_plan() -> None:
    small, only_row_wise = document(small_plan()), {"sparsecore": row_wise_document(A)}
    for name, export in EXPORTERS.items():
        plan = only_row_wise.get(name, small)
        # Table b of the plan names no module.
        written = export(plan, module_path=None if name == "json" else "sparse.ebc", device="cuda")
        assert canonical_bytes(written)


def test_json_is_the_plan_as_it_is() -> None:
    plan = document(small_plan())
    assert EXPORTERS["json"](plan, module_path=None, device="cuda") == plan


def test_formats_that_read_facts_are_told_them() -> None:
    assert [name for name in EXPORTERS if reads_facts(name)] == ["sparsecore"]
    custom, facts = row_wise_document(A, profile="custom"), ExportFacts(sparsecores_per_chip=4)
    written = exporter_of("sparsecore", facts)(custom, module_path=None, device="cuda")
    assert written["num_sc_per_device"] == 4
    assert exporter_of("json", facts)(custom, module_path=None, device="cuda") == custom
