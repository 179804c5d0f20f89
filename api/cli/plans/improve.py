"""``improve`` and ``import``: a plan from anywhere, TorchRec's too, made better, or made a plan of ours."""

from dataclasses import replace
from typing import Annotated

import typer

from api.cli.errors import echo
from api.cli.files import Form, check_output
from api.cli.models.files import CostModelFile
from api.cli.plans.documents import Output
from api.cli.plans.evaluate import print_violations, print_warnings, reject_broken
from api.cli.plans.found_plan import write_found
from api.cli.plans.given import PlanFile, given
from api.cli.plans.plan import Changes, CostModelName, Gap, SpecFile, TimeLimit
from api.cli.plans.plan_files import write_named_plan
from api.cli.plans.solve_locally import document_of
from api.cli.statistics.command import StatisticsFiles
from api.services.plans.reports import evaluation_of
from api.specs.plans.document import GivenPlan
from api.specs.request import SolveRequest
from planner.domain.plan.movement import DEFAULT_MIN_RELATIVE_GAIN, MAX_REMAINING_STEPS, PreviousPlan
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.difference import compare_plans
from planner.output.explain.text.improvement import explain_improvement
from planner.verification.plan_from_placement import plan_of_placement


def improve_command(
    spec: SpecFile,
    plan_file: PlanFile,
    output: Output = None,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    time_limit: TimeLimit = None,
    gap: Gap = None,
    remaining_steps: Annotated[
        int | None,
        typer.Option(
            metavar="STEPS", min=1, help="The job runs: what moves must pay within these steps. Else moving is free."
        ),
    ] = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    form: Form = "long",
) -> None:
    """Search on from a plan from anywhere: writes the better plan, and says what was gained and what is proven."""
    check_output(output, spec, plan_file)
    options: dict[tuple[str, ...], object] = {
        ("solver", "time_limit_seconds"): time_limit,
        ("solver", "relative_gap"): gap,
    }
    request, plan = given(spec, plan_file, cost_model, cost_model_file, statistics, changes, options)
    evaluation = evaluation_of(request, plan)
    print_warnings(evaluation)
    if evaluation.score is None:
        reject_broken(evaluation)
    before = _document(request, plan)
    if not evaluation.valid:
        print_violations(evaluation)
    previous = PreviousPlan(
        placement=plan.placement,
        digest=plan.actual_digest,
        remaining_steps=MAX_REMAINING_STEPS if remaining_steps is None else remaining_steps,
        min_relative_gain=0.0 if remaining_steps is None else DEFAULT_MIN_RELATIVE_GAIN,
    )
    placed = plan.placement  # a job keeps the size of its groups, a host that of its cache of keys and values
    same_sizes = request.problem.of_plan(placed.world_size, placed.kv_cache_bytes)
    # Whether ids are deduplicated stays open where the spec leaves that open.
    improved = replace(same_sizes, use_index_dedup=request.problem.use_index_dedup)
    after = write_found(replace(request, problem=improved, previous=previous), output, form, spec=spec)
    echo(explain_improvement(before, after, is_legal=evaluation.valid))
    echo(compare_plans(before, after))


def import_command(
    spec: SpecFile,
    plan_file: PlanFile,
    output: Output = None,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    form: Form = "long",
) -> None:
    """Write a plan from anywhere, which breaks no rule, as shardplan writes its own: scored, with its digest."""
    check_output(output, spec, plan_file)
    request, plan = given(spec, plan_file, cost_model, cost_model_file, statistics, changes)
    evaluation = evaluation_of(request, plan)
    print_warnings(evaluation)
    if not evaluation.valid or evaluation.score is None:
        reject_broken(evaluation)
    document = _document(request, plan)
    write_named_plan(document, output, form, spec=spec)
    echo(f"{request.name}: {document['plan_digest']}")


def _document(request: SolveRequest, plan: GivenPlan) -> CompactPlanDocument:
    """Return the document of a plan that was not searched for."""
    given_plan = plan_of_placement(request.problem, plan.placement, request.cost_model, assumptions=request.assumptions)
    return document_of(request, given_plan)
