"""``plan`` and ``validate``: commands that take a spec."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from api.cli.admin.client_key import TokenFile
from api.cli.completion import complete_cost_model, complete_objective, complete_partitioner, complete_profile
from api.cli.errors import BadInput, echo, issues_of, print_issues, report
from api.cli.files import (
    AsJson,
    Form,
    PlanForm,
    check_output,
    parse_assignment,
    print_document,
    read_bytes,
    read_plan,
    with_changes,
)
from api.cli.models.files import CostModelFile, chosen_cost_model
from api.cli.plans.plan_files import check_named
from api.cli.plans.spec_text import spec_text
from api.cli.statistics.command import StatisticsFiles, found_statistics
from api.services.plans.reports import validation_of
from api.specs.input.json import read_json
from api.specs.parse import is_well_formed, parse_spec
from api.specs.plans.registry import foreign_text, is_foreign
from api.specs.references.resolve import Library
from api.specs.request import SolveRequest
from planner.errors import InvalidProblem, UnsupportedRequest
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.plan import explain_plan
from planner.output.explain.text.summary import summarise_plan

SpecFile = Annotated[str, typer.Argument(metavar="SPEC.json", help="The spec; - reads standard input.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Replace any field, such as hardware.overrides.hbm_bytes=8e10."),
]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Limit of the search.")]
Gap = Annotated[float | None, typer.Option(metavar="FRACTION", help="Stop when proven this close to the best.")]
Profile = Annotated[
    str | None,
    typer.Option(autocompletion=complete_profile, help="Id of a hardware profile; shardplan doctor lists them."),
]
CostModelName = Annotated[
    str | None,
    typer.Option("--cost-model", autocompletion=complete_cost_model, help="Replaces cost_model of the spec."),
]


def plan_command(
    spec: SpecFile,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PLAN.json",
            help="Where to write the plan; else stdout, or a file if that is a terminal.",
        ),
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Let a service plan, instead of this machine.")
    ] = None,
    token_file: TokenFile = None,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    objective: Annotated[
        str | None,
        typer.Option(autocompletion=complete_objective, help="step_time, max_rank_time or request_latency."),
    ] = None,
    partitioner: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_partitioner, help="portfolio, greedy, ldm, local_search, cp_sat, mathopt."
        ),
    ] = None,
    time_limit: TimeLimit = None,
    gap: Gap = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    profile: Profile = None,
    num_hosts: Annotated[int | None, typer.Option(help="Hosts of the cluster.")] = None,
    ranks_per_host: Annotated[int | None, typer.Option(help="Ranks used on each host.")] = None,
    batch_size_per_rank: Annotated[int | None, typer.Option(help="Samples of one rank in one step.")] = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="PLAN.json", help="A plan that runs already: move away from it only where that pays."),
    ] = None,
    checkpoint_plan: Annotated[
        str | None,
        typer.Option(metavar="PLAN.json", help="Of the checkpoint that the job starts from: keep what it has."),
    ] = None,
    warm_start: Annotated[
        str | None,
        typer.Option(metavar="PLAN.json", help="Begin the search at this plan, of this problem or one much like it."),
    ] = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    form: Form = "long",
    full: Annotated[bool, typer.Option("--full", help="All that is known of the plan, in place of a screen.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on stderr.")] = False,
) -> None:
    """Plan a spec: writes the plan, and a summary for people on stderr."""
    cost_model, find_model = chosen_cost_model(cost_model, cost_model_file)
    options: dict[tuple[str, ...], object] = {
        ("cost_model",): cost_model,
        ("objective",): objective,
        ("solver", "partitioner"): partitioner,
        ("solver", "time_limit_seconds"): time_limit,
        ("solver", "relative_gap"): gap,
        ("solver", "seed"): seed,
        ("hardware", "profile"): profile,
        ("hardware", "num_hosts"): num_hosts,
        ("hardware", "ranks_per_host"): ranks_per_host,
        ("model", "batch_size_per_rank"): batch_size_per_rank,
    }
    if previous is not None:
        options["previous_plan", "plan"] = _plan_of_file(previous)
    if checkpoint_plan is not None:
        options["checkpoint_plan", "plan"] = _plan_of_file(checkpoint_plan)
    if warm_start is not None:
        options["solver", "warm_start", "plan"] = _plan_of_file(warm_start)
    check_output(output, spec, *(one for one in (previous, checkpoint_plan, warm_start) if one is not None))
    content = changed_spec(spec, options, changes)
    if server is None:
        library = Library(find_statistics=found_statistics(statistics).get, find_model=find_model)
        found = _planned_here(parse_spec(content, library), output, form, spec=spec, quiet=quiet)
    else:
        _check_remote(statistics, cost_model_file)
        found = _planned_by(server, token_file, content, output, form, spec=spec, quiet=quiet)
    if not quiet:
        echo(explain_plan(found) if full else summarise_plan(found))


def _planned_here(
    request: SolveRequest, output: str | None, form: PlanForm, *, spec: str, quiet: bool
) -> CompactPlanDocument:
    from api.cli.plans.found_plan import write_found  # it loads the searches, which commands that check do not need

    if not quiet:
        print_issues(request.warnings)
    return write_found(request, output, form, spec=spec, quiet=quiet)


def _check_remote(statistics: Sequence[str] | None, cost_model_file: str | None) -> None:
    """Reject files that a service cannot read."""
    if statistics:
        raise BadInput("--statistics is for planning here; the service knows those that were posted to /v1/statistics")
    if cost_model_file is not None:
        raise BadInput(
            "--cost-model-file is for planning here; --cost-model names a model that the service fitted or has"
        )


def _planned_by(
    server: str, token_file: str | None, content: bytes, output: str | None, form: PlanForm, *, spec: str, quiet: bool
) -> CompactPlanDocument:
    """Let a service plan a spec, follow its solve, and bring the plan."""
    from api.cli.remote.connection import connected  # an HTTP library, which planning here does not need
    from api.cli.remote.follow import conclude_solve, followed, print_solve_warnings

    check_named(output)
    document = read_json(content)
    if not is_well_formed(content) or not isinstance(document, dict):
        parse_spec(content)  # which raises what is wrong with the form
        raise BadInput("the spec is no JSON object")
    with connected(server, token_file) as client:
        solve = client.submit(document)
        if not quiet:
            echo(f"shardplan: solve {solve['id']} at {server}: {solve['state']}")
            print_solve_warnings(solve)
        return conclude_solve(client, followed(client, solve, server, quiet=quiet), output, form, spec=spec)


def _plan_of_file(path: str) -> object:
    """Return a plan of shardplan, checked, or the raw plan of another runtime, which only its spec can decode."""
    raw = read_bytes(path)
    content = foreign_text(raw) or read_json(raw)
    return content if is_foreign(content) else read_plan(path)


def validate_command(
    spec: SpecFile,
    cost_model_file: CostModelFile = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Check a spec without solving: problems with their place and the way out."""
    cost_model, find_model = chosen_cost_model(None, cost_model_file)
    try:
        library = Library(find_statistics=found_statistics(statistics).get, find_model=find_model)
        request = parse_spec(changed_spec(spec, {("cost_model",): cost_model}, changes), library)
    except (InvalidProblem, UnsupportedRequest) as error:
        issues = issues_of(error)
        listed = [{"pointer": i.pointer, "code": i.code, "message": i.message, "hint": i.hint} for i in issues]
        print_document({"valid": False, "problems": listed}, as_json=as_json)
        raise typer.Exit(report(error)) from None
    validation = validation_of(request)
    print_document(validation.model_dump(mode="json"), as_json=as_json)
    echo(spec_text(request))
    print_issues(request.warnings)


def changed_spec(spec: str, options: Mapping[tuple[str, ...], object], assignments: Sequence[str] | None) -> bytes:
    """The spec with the command line's options and ``--set`` assignments applied."""
    changes: dict[Sequence[str], object] = {path: value for path, value in options.items() if value is not None}
    changes.update(parse_assignment(text) for text in assignments or ())
    return with_changes(read_bytes(spec), changes)
