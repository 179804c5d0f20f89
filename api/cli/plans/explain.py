"""``explain``: why a plan is as it is."""

from typing import Annotated

import typer

from api.cli.errors import echo, print_issues
from api.cli.files import AsJson, print_document
from api.cli.models.files import CostModelFile
from api.cli.plans.given import PlanFile, given
from api.cli.plans.plan import Changes, CostModelName, SpecFile
from api.cli.statistics.command import StatisticsFiles
from api.services.plans.reports import explain_given, explanation_document
from planner.output.explain.text.explanation import explanation_text


def explain_command(
    spec: SpecFile,
    plan_file: PlanFile,
    tables: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many tables are explained, the heaviest first.")
    ] = 10,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Say what a plan waits for, what more hardware would buy, and what else its tables could be."""
    request, plan = given(spec, plan_file, cost_model, cost_model_file, statistics, changes)
    explanation = explain_given(request, plan, spec_digest=request.spec_digest, max_tables=tables)
    print_document(
        explanation_document(request.spec_digest, plan, explanation).model_dump(mode="json"), as_json=as_json
    )
    print_issues((*request.model_warnings, *plan.other_spec(request.stated_spec_digest, request.spec_digest)))
    echo(explanation_text(explanation, name=request.name))
