"""Every export format is found by its name and writes canonical JSON."""

from cost_models.vocabulary import Scheme
from planner.canonical import canonical_bytes
from planner.domain.table import TableConstraints
from planner.exporters.registry import EXPORTERS
from planner.partitioners.base import SolveLimits
from planner.partitioners.greedy import Greedy
from planner.pipeline import plan
from tests.planner.builders import ROOFLINE, make_problem, make_table
from tests.planner.exporters.test_generic import document, small_plan


def test_every_format_writes_a_plan() -> None:
    """One of whole tables, which every runtime holds."""
    wanted = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    tables = make_table("a", module_path="sparse.ebc", constraints=wanted), make_table("b", constraints=wanted)
    limits = SolveLimits(time_limit_seconds=1)
    found = plan(make_problem(*tables), cost_model=ROOFLINE, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    for name, export in EXPORTERS.items():
        # Table b of the plan names no module.
        path = None if name == "json" else "sparse.ebc"
        written = export(document(found), module_path=path, device="cuda")
        assert canonical_bytes(written)


def test_json_is_the_plan_as_it_is() -> None:
    plan = document(small_plan())
    assert EXPORTERS["json"](plan, module_path=None, device="cuda") == plan
