"""``plan`` and ``validate``: commands that take a spec."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated

import typer

from api.cli.background import interruptible
from api.cli.errors import ExitCode, issues_of, report, say, say_issues
from api.cli.files import (
    STDIN,
    AsJson,
    parse_assignment,
    read_bytes,
    read_plan,
    refuse_overwriting,
    tell_document,
    with_changes,
    write_content,
)
from api.cli.model_files import CostModelFile, chosen_cost_model
from api.cli.stats import StatisticsFiles, found_statistics
from planner.domain.plan import PlanResult
from planner.errors import InvalidProblem, UnsupportedRequest
from planner.explain.infeasible import explain_no_plan
from planner.explain.plan import explain_plan
from planner.exporters.generic import to_bytes, to_document

FEASIBLE, CANCELLED = "FEASIBLE", "cancelled"

SpecFile = Annotated[str, typer.Argument(metavar="SPEC.json", help="The spec; - reads standard input.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Replace any field, such as hardware.overrides.hbm_bytes=8e10."),
]
CostModelName = Annotated[str | None, typer.Option("--cost-model", help="Replaces cost_model of the spec.")]


def plan_command(
    spec: SpecFile,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PLAN.json", help="Where to write the plan, else stdout.")
    ] = None,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    objective: Annotated[str | None, typer.Option(help="step_time, max_rank_time or request_latency.")] = None,
    partitioner: Annotated[
        str | None, typer.Option(help="portfolio, greedy, ldm, local_search, lns, cp_sat, mathopt.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Limit of the search.")] = None,
    gap: Annotated[
        float | None, typer.Option(metavar="FRACTION", help="Stop when proven this close to the best.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    profile: Annotated[str | None, typer.Option(help="Id of a hardware profile.")] = None,
    num_hosts: Annotated[int | None, typer.Option(help="Hosts of the cluster.")] = None,
    ranks_per_host: Annotated[int | None, typer.Option(help="Ranks used on each host.")] = None,
    batch_size_per_rank: Annotated[int | None, typer.Option(help="Samples of one rank in one step.")] = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="PLAN.json", help="A plan that runs already: move away from it only where that pays."),
    ] = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary on stderr.")] = False,
) -> None:
    """Plan a spec: writes the plan, and a summary for people on stderr."""
    from api.convert import parse_spec
    from planner.partitioners.machine_code import is_warm
    from planner.partitioners.warm import warm
    from planner.pipeline import plan
    from planner.priced import Reason

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
        options["previous_plan", "plan"] = read_plan(previous)
    refuse_overwriting(output, spec, *([] if previous is None else [previous]))
    find_statistics = found_statistics(statistics).get
    request = parse_spec(changed_spec(spec, options, changes), find_statistics=find_statistics, find_model=find_model)
    if not quiet:
        say_issues(request.warnings)
    if not is_warm():
        say("shardplan: compiling the search for this machine, once; this takes about half a minute")
        warm()
    best: list[PlanResult] = []
    try:
        result = interruptible(
            lambda: plan(
                request.problem,
                cost_model=request.cost_model,
                partitioner=request.partitioner,
                limits=request.limits,
                assumptions=request.assumptions,
                previous=request.previous,
                on_result=best.append,
            )
        )
    except KeyboardInterrupt:
        result = _interrupted(best)
        say("shardplan: interrupted; this is the best plan until then")
    if result.plan is None:
        say(explain_no_plan(result, name=request.name))
        if output in (None, STDIN):
            tell_document(_told(result), as_json=output == STDIN)
        raise typer.Exit(ExitCode.INFEASIBLE if result.reason == Reason.INFEASIBLE else ExitCode.TROUBLE)
    facts = {
        "name": request.name,
        "spec_digest": request.spec_digest,
        "hardware_profile": request.hardware_profile,
    }
    _, content = to_bytes(result.plan, **facts)
    write_content(content, output)
    if not quiet:
        say(explain_plan(to_document(result.plan, **facts)))


def _interrupted(found: list[PlanResult]) -> PlanResult:
    """The best plan before an interrupt; goes on with the interrupt where there is none."""
    plans = [result for result in found if result.plan is not None]
    if not plans:
        raise KeyboardInterrupt
    last = plans[-1]
    assert last.plan is not None
    detail = "cancelled; this is the best plan until then"
    plan = replace(last.plan, reason=FEASIBLE, limit=CANCELLED, detail=detail)
    return replace(last, plan=plan, reason=FEASIBLE, limit=CANCELLED, detail=detail)


def _told(result: PlanResult) -> dict[str, object]:
    """A solve without a plan, as ``result`` of a solve over HTTP."""
    from api.schemas.solve import ResultDocument
    from api.solve_results import result_of

    shortfalls = [asdict(shortfall) for shortfall in result.shortfalls]
    diagnosis = None if result.diagnosis is None else asdict(result.diagnosis)
    told = result_of(None, str(result.reason), result.limit, result.detail, shortfalls, diagnosis)
    document = ResultDocument.model_validate({**told, "lower_bound_seconds": result.lower_bound_seconds})
    return document.model_dump(mode="json", exclude={"plan_url"})


def validate_command(
    spec: SpecFile,
    cost_model_file: CostModelFile = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Check a spec without solving: problems with their place and the way out."""
    from api.convert import parse_spec
    from api.report import validation_of

    cost_model, find_model = chosen_cost_model(None, cost_model_file)
    try:
        request = parse_spec(
            changed_spec(spec, {("cost_model",): cost_model}, changes),
            find_statistics=found_statistics(statistics).get,
            find_model=find_model,
        )
    except (InvalidProblem, UnsupportedRequest) as error:
        issues = issues_of(error)
        listed = [{"pointer": i.pointer, "code": i.code, "message": i.message, "hint": i.hint} for i in issues]
        tell_document({"valid": False, "problems": listed}, as_json=as_json)
        raise typer.Exit(report(error)) from None
    tell_document(validation_of(request).model_dump(mode="json"), as_json=as_json)
    tables, ranks = len(request.problem.tables), request.problem.world_size
    say(f"{request.name}: valid; {tables:,} {'table' if tables == 1 else 'tables'} on {ranks:,} ranks")
    say_issues(request.warnings)


def changed_spec(spec: str, options: dict[tuple[str, ...], object], assignments: Sequence[str] | None) -> bytes:
    """The spec with the command line's options and ``--set`` assignments applied."""
    changes: dict[Sequence[str], object] = {path: value for path, value in options.items() if value is not None}
    changes.update(parse_assignment(text) for text in assignments or ())
    return with_changes(read_bytes(spec), changes)
