"""A scheme that runtimes do not list yet: every runtime but ``generic`` rejects it, in options, plans and exports."""

import pytest

from cost_models.vocabulary import Holders, Kernel, Scheme, SchemeFacts, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.options.runtimes.export import ExportFacts, PlanToExport, UnexportablePlan
from planner.options.runtimes.registry import EXPORTS, RUNTIMES
from tests.support.planning.builders import make_problem, make_table

OTHERS = sorted(RUNTIMES.keys() - {"generic"})


def new_scheme() -> Scheme:
    """A scheme that is no member: like table_wise, under another name and code."""
    scheme = int.__new__(Scheme, len(Scheme))
    scheme._name_, scheme._value_ = "SPIRAL", len(Scheme)
    scheme.facts = SchemeFacts(holders=Holders.RANK, words="wound around one rank")
    return scheme


def placement_of_new_scheme() -> Placement:
    shards = Shards.of_columns(rank=0, row_offset=0, num_rows=1000, column_offset=0, num_columns=64, tier=Tier.HBM)
    placed = TablePlacement(name="t", sharding_type=new_scheme(), compute_kernel=Kernel.FUSED, shards=shards)
    return Placement(world_size=4, ranks_per_host=4, tables=(placed,))


@pytest.mark.parametrize("runtime", OTHERS)
def test_it_is_no_option(runtime: str) -> None:
    table = make_table()
    assert RUNTIMES[runtime].scheme_issue(table, new_scheme()) is not None
    assert RUNTIMES["generic"].scheme_issue(table, new_scheme()) is None


@pytest.mark.parametrize("runtime", ["torchrec", "torcheasyrec"])
def test_a_plan_with_it_is_rejected(runtime: str) -> None:
    """By runtimes whose plans name schemes; the other runtimes look at shards alone."""
    placement = placement_of_new_scheme()
    problem = make_problem(runtime=runtime)
    messages = [issue.message for issue in RUNTIMES[runtime].check(problem, placement)]
    assert messages
    assert all(message == 'table "t": TorchRec has no spiral' for message in messages)


def test_a_plan_with_it_is_not_exported_for_torchrec() -> None:
    plan = PlanToExport(
        runtime="torchrec",
        placement=placement_of_new_scheme(),
        hardware_profile=None,
        device="cuda",
        module_path="m",
        facts=ExportFacts(),
    )
    with pytest.raises(UnexportablePlan, match='Table "t" is spiral, which TorchRec does not have'):
        EXPORTS["torchrec"](plan)
