"""``evaluate``: what a plan from anywhere costs, and what is wrong with it."""

from typing import NoReturn

import typer

from api.cli.errors import ExitCode, echo, print_issues
from api.cli.files import AsJson, print_document
from api.cli.models.files import CostModelFile
from api.cli.plans.given import PlanFile, given
from api.cli.plans.plan import Changes, CostModelName, SpecFile
from api.cli.statistics.command import StatisticsFiles
from api.schemas.evaluation import EvaluationDocument
from api.services.plans.reports import evaluation_of
from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes, format_seconds
from planner.errors import Issue
from planner.output.documents.plan import ScoreDocument
from planner.output.explain.text.fullest_ranks import fullest_ranks


def evaluate_command(
    spec: SpecFile,
    plan_file: PlanFile,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Score and verify a plan, wherever it comes from, under any cost model."""
    request, plan = given(spec, plan_file, cost_model, cost_model_file, statistics, changes)
    evaluation = evaluation_of(request, plan)
    print_document(evaluation.model_dump(mode="json"), as_json=as_json)
    if evaluation.score is not None:
        echo(f"{request.name} under {evaluation.score['cost_model']}")
        _report_score(evaluation.score)
    print_warnings(evaluation)
    if not evaluation.valid:
        reject_broken(evaluation)
    echo("  no rule is broken: the plan may be used")


def _report_score(score: ScoreDocument) -> None:
    seconds = {
        "step_time": score["step_time_seconds"],
        "max_rank_time": score["max_rank_time_seconds"],
        score["objective"]: score["objective_seconds"],
    }
    for name, value in seconds.items():
        if value is not None:
            echo(f"  {name:<15}  {format_seconds(value)}")
    prediction, checkpoint = score.get("prediction"), score.get("checkpoint")
    if prediction is not None:
        lower, upper = prediction["lower_seconds"], prediction["upper_seconds"]
        echo(f"  between          {format_seconds(lower)} and {format_seconds(upper)}")
    for one in fullest_ranks([rank["bytes"] for rank in score["ranks"]]):
        rank = score["ranks"][one.position]
        used, capacity = format_bytes(one.used_bytes), format_bytes(rank["capacity_bytes"].get(one.tier, 0))
        echo(f"  {f'fullest in {one.tier}':<15}  {used} of {capacity}, rank {rank['rank']}")
    if (sync := score.get("replica_sync")) is not None:
        echo(f"  averages         {format_seconds(sync['seconds_per_step'])} per step over sharding groups")
    if (cache := score.get("kv_cache")) is not None:
        echo(f"  keys and values  {format_seconds(cache['seconds_per_request'])} per request for misses")
    if checkpoint is not None:
        echo(f"  checkpoints      {format_seconds(checkpoint['lost_seconds_per_step'])} per step")


def print_warnings(evaluation: EvaluationDocument) -> None:
    print_issues([Issue(**warning.model_dump()) for warning in evaluation.warnings])


def reject_broken(evaluation: EvaluationDocument) -> NoReturn:
    """Report what is wrong with a plan that must not be used, and stop."""
    print_violations(evaluation)
    raise typer.Exit(ExitCode.BAD_INPUT)


def print_violations(evaluation: EvaluationDocument) -> None:
    echo(f"shardplan: the plan breaks {counted(evaluation.num_violations, 'rule')} and must not be used")
    for violation in evaluation.violations:
        echo(f"  {violation.pointer}: {violation.message}")
        if violation.hint:
            echo(f"    {violation.hint}")
    if evaluation.num_violations > len(evaluation.violations):
        echo(f"  ... and {evaluation.num_violations - len(evaluation.violations)} more")
