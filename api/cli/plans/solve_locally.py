"""Solves in the process of a command."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from api.cli.errors import echo
from planner.domain.plan.plan import Plan, PlanResult
from planner.output.exporters.generic import to_document
from planner.output.plan_document import PlanDocument

if TYPE_CHECKING:
    from api.specs.parse import SolveRequest


def compile_search() -> None:
    """Compile the search for this machine, with a message, unless that was done before."""
    from planner.solver.partitioners.kernels.cache import is_warm
    from planner.solver.partitioners.kernels.warm_up import warm

    if not is_warm():
        echo("shardplan: compiling the search for this machine, once; this takes about half a minute")
        warm()


def solved(request: "SolveRequest", on_result: Callable[[PlanResult], None] | None = None) -> PlanResult:
    """Plan a request."""
    from planner.pipeline import plan

    return plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=request.limits,
        assumptions=request.assumptions,
        previous=request.previous,
        on_result=on_result,
    )


def facts_of(request: "SolveRequest") -> dict[str, str]:
    """Return what a plan document says of the request that it answers."""
    return {
        "name": request.name,
        "spec_digest": request.spec_digest,
        "hardware_profile": request.hardware_profile,
    }


def document_of(request: "SolveRequest", plan: Plan) -> PlanDocument:
    """Return the document of a plan for a request."""
    return to_document(plan, **facts_of(request))
