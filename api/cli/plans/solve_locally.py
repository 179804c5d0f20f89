"""Solves in the process of a command."""

from api.cli.errors import echo
from api.execution.processes.solve import facts_of
from api.specs.request import SolveRequest
from planner.domain.plan.plan import Plan
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.exporters.generic import to_document
from planner.solver.partitioners.kernels.cache import compiling_alone, is_warm
from planner.solver.partitioners.kernels.warm_up import warm


def compile_search() -> None:
    """Compile the search for this machine, with a message, unless that was done before."""
    if not is_warm():
        echo("shardplan: compiling the search for this machine, once; this takes about half a minute")
        with compiling_alone():
            warm()


def document_of(request: SolveRequest, plan: Plan) -> CompactPlanDocument:
    """Return the document of a plan, in compact form."""
    return to_document(plan, **facts_of(request, request.spec_digest))
