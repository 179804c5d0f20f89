"""Solves a request on the command line and writes the plan, as far as there is one."""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import typer

from api.cli.errors import ExitCode, echo
from api.cli.files import STDIN, PlanForm, print_document
from api.cli.interruptible import interruptible
from api.cli.plans.plan_files import check_named, write_named_plan
from api.cli.plans.progress import search_progress
from api.cli.plans.solve_locally import compile_search, document_of
from api.execution.processes.solve import answer_of, planned
from api.execution.solves.results import result_of_answer
from api.schemas.solve import ResultDocument
from api.specs.request import SolveRequest
from planner.domain.plan.plan import PlanResult
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.infeasible import explain_no_plan
from planner.solver.problem import Reason

FEASIBLE, CANCELLED = "FEASIBLE", "cancelled"


def write_found(
    request: SolveRequest, output: str | None, form: PlanForm, *, spec: str, quiet: bool = False
) -> CompactPlanDocument:
    """Plan a request with a line of progress, write the plan as ``write_named_plan``, and return its document.

    Raises
    ------
    typer.Exit
        There is no plan; why not was printed.
    """
    check_named(output)
    compile_search()
    best: deque[PlanResult] = deque(maxlen=1)  # a plan of many ranks has millions of shards
    try:
        with search_progress(is_quiet=quiet) as progress:

            def on_result(result: PlanResult) -> None:
                best.append(result)
                if (plan := result.plan) is not None:
                    seconds = plan.evaluation.objective_seconds
                    progress.update(seconds, plan.lower_bound_seconds, plan.relative_gap)

            result = interruptible(lambda: planned(request, request.assumptions, on_result))
    except KeyboardInterrupt:
        result = _interrupted(best)
        echo("shardplan: interrupted; this is the best plan until then")
    if result.plan is None:
        echo(explain_no_plan(result, name=request.name))
        if output in (None, STDIN):
            print_document(_result_document(result), as_json=output == STDIN)
        raise typer.Exit(ExitCode.INFEASIBLE if result.reason == Reason.INFEASIBLE else ExitCode.TROUBLE)
    document = document_of(request, result.plan)
    write_named_plan(document, output, form, spec=spec)
    return document


def _interrupted(found: Iterable[PlanResult]) -> PlanResult:
    """The best plan before an interrupt; goes on with the interrupt where there is none."""
    plans = [result for result in found if result.plan is not None]
    if not plans:
        raise KeyboardInterrupt
    last = plans[-1]
    assert last.plan is not None
    detail = "cancelled; this is the best plan until then"
    plan = replace(last.plan, reason=FEASIBLE, limit=CANCELLED, detail=detail)
    return replace(last, plan=plan, reason=FEASIBLE, limit=CANCELLED, detail=detail)


def _result_document(result: PlanResult) -> dict[str, object]:
    """A solve without a plan, as ``result`` of a solve over HTTP."""
    document = ResultDocument.model_validate(result_of_answer(answer_of(result, None), None))
    return document.model_dump(mode="json", exclude={"plan_url"})
