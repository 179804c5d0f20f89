"""``compare`` and ``export``: commands that take a plan."""

from collections.abc import Mapping
from typing import Annotated, Literal

import typer

from api.cli.completion import complete_format
from api.cli.errors import BadInput, echo
from api.cli.files import AsJson, PlanForm, check_output, print_document, read_plan, write_parts, write_plan
from api.cli.plans.plan import Changes, changed_spec
from api.cli.statistics.command import StatisticsFiles, found_statistics
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from cost_models.protocol import CostModel
from planner.domain.problem.problem import Problem
from planner.options.runtimes.export import ExportFacts, UnexportablePlan
from planner.output.explain.difference import difference
from planner.output.explain.text.difference import compare_plans
from planner.output.exporters.registry import CHROME_TRACE, FORMATS, JSON, export_parts, reads_facts

PlanFile = Annotated[str, typer.Argument(metavar="PLAN.json", help="A plan that shardplan wrote; - is standard input.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write the result, else stdout.")
]


def compare_command(
    first: Annotated[str, typer.Argument(metavar="A.json", help="A plan.")],
    second: Annotated[str, typer.Argument(metavar="B.json", help="Another plan.")],
    as_json: AsJson = False,
) -> None:
    """Say what changed from plan A to plan B: tables, seconds, bytes."""
    a, b = read_plan(first), read_plan(second)
    print_document(difference(a, b).to_document(), as_json=as_json)
    echo(compare_plans(a, b))


def export_command(
    plan: PlanFile,
    export_format: Annotated[
        str,
        typer.Option(
            "--format",
            autocompletion=complete_format,
            help=f"One of {', '.join(FORMATS)}; json is the plan itself.",
        ),
    ] = "torchrec",
    output: Output = None,
    module_path: Annotated[
        str | None,
        typer.Option(help="Path of the embedding module in the model, for plans whose spec gave none."),
    ] = None,
    device: Annotated[
        Literal["cuda", "cpu"] | None,
        typer.Option(help="Where the tables are trained; by default the devices of the plan's hardware profile."),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC.json",
            help="The spec of the plan: sparsecore reads batch, optimizers and accesses; chrome_trace shows sharding"
            " types inside phases.",
        ),
    ] = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    sparsecores_per_chip: Annotated[
        int | None, typer.Option(help="For sparsecore, where the hardware profile does not say.")
    ] = None,
    form: Annotated[
        PlanForm, typer.Option("--form", help="For json: long lists every shard, compact groups them.")
    ] = "long",
) -> None:
    """Write a plan in the form that a runtime, or a viewer of traces, takes."""
    check_output(output, plan)
    document = read_plan(plan)
    if export_format not in FORMATS:
        raise BadInput(f"no export format of this name; known: {', '.join(FORMATS)}")
    problem, model = None, None
    if spec is not None:
        if not reads_facts(export_format):
            raise BadInput(f"--spec says nothing to the format {export_format}")
        problem, model = _priced_by(spec, statistics, changes, document, export_format)
    if form == "compact":
        if export_format != JSON:
            raise BadInput(f"--form says nothing to the format {export_format}")
        write_plan(document, output, form)
        return
    facts = ExportFacts(problem=problem, sparsecores_per_chip=sparsecores_per_chip, cost_model=model)
    try:
        parts = export_parts(document, export_format, module_path=module_path, device=device, facts=facts)
    except UnexportablePlan as error:
        raise BadInput(str(error)) from error
    write_parts(parts, output)


def _priced_by(
    spec: str,
    statistics: StatisticsFiles,
    changes: Changes,
    document: Mapping[str, object],
    export_format: str,
) -> tuple[Problem, CostModel]:
    """Return what a plan was made for and what priced it, and say so where its spec is another."""
    request = parse_spec(changed_spec(spec, {}, changes), Library(find_statistics=found_statistics(statistics).get))
    if document["spec_digest"] != request.spec_digest:
        other = f"the plan was made for the spec {document['spec_digest']}, and {spec} is {request.spec_digest}"
        if export_format == CHROME_TRACE:
            raise BadInput(f"{other}: its prices say nothing of this plan")
        echo(f"warning: {other}")
    return request.problem, request.cost_model
