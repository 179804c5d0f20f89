"""A spec and a plan from anywhere, for commands that say something of a plan."""

from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.files import read_bytes, refuse_swapped
from api.cli.model_files import CostModelFile, chosen_cost_model
from api.cli.plan import Changes, CostModelName, SpecFile, changed_spec
from api.cli.stats import StatisticsFiles, found_statistics

if TYPE_CHECKING:
    from api.convert import SolveRequest
    from api.given_plan import GivenPlan

PlanFile = Annotated[str, typer.Argument(metavar="PLAN.json", help="A plan from anywhere; - is standard input.")]


def given(
    spec: SpecFile,
    plan_file: PlanFile,
    cost_model: CostModelName,
    cost_model_file: CostModelFile,
    statistics: StatisticsFiles,
    changes: Changes,
) -> "tuple[SolveRequest, GivenPlan]":
    """Read and check both; raises what both readers raise, and ``BadInput`` where they are swapped."""
    from api.convert import parse_plan, parse_spec

    refuse_swapped(spec, plan_file)
    cost_model, find_model = chosen_cost_model(cost_model, cost_model_file)
    request = parse_spec(
        changed_spec(spec, {}, changes),
        cost_model=cost_model,
        find_statistics=found_statistics(statistics).get,
        find_model=find_model,
    )
    return request, parse_plan(read_bytes(plan_file))
