"""Every export format is found by its name and writes canonical JSON."""

import pytest

from cost_models.vocabulary import Scheme
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.table import TableConstraints
from planner.options.runtimes.export import ExportFacts, UnexportablePlan
from planner.output.exporters.registry import FORMATS, reads_facts
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.planner.options.runtimes.sparsecore.test_export import A
from tests.planner.options.runtimes.sparsecore.test_export import document as row_wise_document
from tests.planner.output.exporters.test_generic import document, small_plan
from tests.support.planning.builders import ROOFLINE, make_problem, make_table
from tests.support.planning.long_plans import exported


def test_every_format_writes_a_plan() -> None:
    """One of a whole table on each rank, which every runtime but two holds."""
    wanted = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    tables = [make_table(name, constraints=wanted) for name in "abcd"]
    tables[0] = make_table("a", module_path="sparse.ebc", constraints=wanted)
    limits = SolveLimits(time_limit_seconds=1)
    found = plan(make_problem(*tables), cost_model=ROOFLINE, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    whole, only_row_wise = (
        document(found),
        {"sparsecore": row_wise_document(A), "dynamicemb": row_wise_document(A, profile="custom")},
    )
    for name in FORMATS:
        # The other tables of the plan name no module.
        path = None if name == "json" else "sparse.ebc"
        written = exported(only_row_wise.get(name, whole), name, module_path=path, device="cuda")
        assert canonical_bytes(written)


def test_json_is_the_plan_as_it_is() -> None:
    plan = document(small_plan())
    assert exported(plan, "json", module_path=None, device="cuda") == plan


def test_formats_that_read_facts_are_reported_them() -> None:
    assert [name for name in FORMATS if reads_facts(name)] == ["chrome_trace", "dynamicemb", "sparsecore"]
    custom, facts = row_wise_document(A, profile="custom"), ExportFacts(sparsecores_per_chip=4)
    written = exported(custom, "sparsecore", module_path=None, device="cuda", facts=facts)
    assert written["num_sc_per_device"] == 4
    assert exported(custom, "json", module_path=None, device="cuda", facts=facts) == custom


def test_deduplicated_ids_are_exported_where_they_are_run() -> None:
    sequence = make_table("a", pooling="none", module_path="sparse.sequences", access=ZipfAccess(alpha=1.2))
    limits = SolveLimits(time_limit_seconds=1)
    of = make_problem(sequence, use_index_dedup=True)
    found = plan(of, cost_model=ROOFLINE, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    written = document(found)
    assert written["use_index_dedup"] is True
    assert plan_digest({**written, "use_index_dedup": False}) != written["plan_digest"]
    exported_plan = exported(written, "torchrec", module_path=None, device="cuda")
    assert exported_plan["embedding_collection_sharder"] == {"use_index_dedup": True}
    with pytest.raises(UnexportablePlan, match="leaves out repeated ids, which torcheasyrec does not"):
        exported(written, "torcheasyrec", module_path=None, device="cuda")
