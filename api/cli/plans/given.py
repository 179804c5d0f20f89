"""A spec and a plan from anywhere, for commands that say something of a plan."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import typer

from api.cli.errors import echo, wrapped
from api.cli.files import read_bytes, reject_spec, reject_swapped
from api.cli.models.files import CostModelFile, chosen_cost_model
from api.cli.plans.plan import Changes, CostModelName, SpecFile, changed_spec
from api.cli.statistics.command import StatisticsFiles, found_statistics
from api.services.plans.printed_memory import compared_memory
from api.specs.parse import parse_plan, parse_spec
from api.specs.plans.document import GivenPlan
from api.specs.references.resolve import Library
from api.specs.request import SolveRequest
from planner.errors import InvalidProblem

PlanFile = Annotated[
    str, typer.Argument(metavar="PLAN.json", help="A plan from anywhere, TorchRec's print-out too; - is stdin.")
]


def given(
    spec: SpecFile,
    plan_file: PlanFile,
    cost_model: CostModelName,
    cost_model_file: CostModelFile,
    statistics: StatisticsFiles,
    changes: Changes,
    options: Mapping[tuple[str, ...], object] = MappingProxyType({}),
) -> tuple[SolveRequest, GivenPlan]:
    """Read and check both, the spec with ``options`` in place of its fields; those in the form of others, too.

    Raises what both readers raise, and ``BadInput`` where the files are swapped.
    """
    reject_swapped(spec, plan_file)
    cost_model, find_model = chosen_cost_model(cost_model, cost_model_file)
    content = changed_spec(spec, options, changes)
    library = Library(find_statistics=found_statistics(statistics).get, find_model=find_model)
    request = parse_spec(content, library, cost_model=cost_model)
    raw = read_bytes(plan_file)
    try:
        plan = parse_plan(raw, request.problem)
    except InvalidProblem:
        reject_spec(plan_file, raw)
        raise
    memory = compared_memory(request.problem, plan)
    if memory is not None and memory.agrees:
        for line in wrapped(memory.text(), ""):
            echo(line)
    return request, plan
