"""``batch``: plans many specs on many shapes of cluster; cut off, it goes on where it was."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.cli.admin.client_key import TokenFile, address_of, token_in
from api.cli.batch.items import Item, items_of, parse_shape
from api.cli.batch.log import BatchLog, Outcome
from api.cli.batch.summary import summary_csv, summary_text
from api.cli.errors import MAX_COLUMNS, UNAUTHORIZED, BadInput, ExitCode, echo, issues_of
from api.cli.files import Form, PlanForm, write_content, write_plan
from api.cli.plans.solve_locally import compile_search, document_of
from api.cli.statistics.command import StatisticsFiles, found_statistics
from api.client import ClientError, PlannerClient, ProblemError, SolveTimeout, Unreachable
from api.execution.processes.solve import planned
from api.services.studies.rules.figures import figures_of
from api.services.studies.rules.specs import machines_of
from api.specs.input.json import read_json
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from api.specs.references.statistics import FindStatistics
from cost_models.errors import CostModelError
from planner.domain.formats.canonical_json import digest
from planner.domain.formats.compaction import compact_document
from planner.domain.plan.baseline import LEGAL, TORCHREC_GREEDY
from planner.errors import InvalidProblem, PlannerError, UnsupportedRequest
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.layout import paragraph
from planner.output.explain.text.verdict import verdict_text
from planner.output.explain.verdict import verdict_of
from planner.solver.problem import Reason

#: Plans one spec, as normalised canonical bytes or as it was sent; returns what became of it, and the plan.
Planner = Callable[[Item, bytes, str], tuple[Outcome, CompactPlanDocument | None]]


#: A server that so many specs in a row did not reach is not asked for the others.
_MOST_UNREACHED = 3


def batch_command(
    specs: Annotated[
        list[str], typer.Argument(metavar="SPECS...", help="Specs, folders of specs, or quoted patterns.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where plans, log and summary go.")],
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="PROFILE:HOSTSxRANKS", help="Plan every spec for this cluster; may be repeated."),
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Let a service plan, instead of this process.")
    ] = None,
    token_file: TokenFile = None,
    tag: Annotated[str | None, typer.Option(help="Tag of the solves on the server, else from the folder.")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Limit of each search.")] = None,
    statistics: StatisticsFiles = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Replace any field of all specs.")
    ] = None,
    form: Form = "long",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table on stderr.")] = False,
) -> None:
    """Plan many specs, each on its own cluster or on all shapes; run it again to go on after an interrupt."""
    shapes = [parse_shape(text) for text in shape or ()]
    options = [] if time_limit is None else [(("solver", "time_limit_seconds"), time_limit)]
    items = items_of(specs, shapes, options, changes or [])
    folder = Path(output)
    if server is None:
        plan = _local_planner(found_statistics(statistics).get)
    elif statistics:
        raise BadInput("--statistics is for planning here; the service knows those that were posted to /v1/statistics")
    else:
        plan = _remote_planner(address_of(server), _tag(tag, folder), token_in(token_file))
    log = BatchLog(folder)
    outcomes = _run(items, log, plan, form, quiet=quiet)
    write_content(summary_csv(outcomes), str(folder / "summary.csv"))
    if not quiet:
        echo(summary_text(outcomes, width=MAX_COLUMNS))
        counts = ", ".join(f"{number} {state}" for state, number in Counter(one.state for one in outcomes).items())
        echo(f"shardplan: {counts}; figures in {folder / 'summary.csv'}")
        _report_details(outcomes)
    raise typer.Exit(_exit_code(outcomes))


def _report_details(outcomes: Sequence[Outcome]) -> None:
    """Print what is wrong, once for a model if all of its shapes have it: then it lies in the spec."""
    num_alike = Counter((one.model, one.detail) for one in outcomes)
    num_shapes = Counter(one.model for one in outcomes)
    lines = [
        f"{one.model if num_alike[one.model, one.detail] == num_shapes[one.model] else one.name}: {one.detail}"
        for one in outcomes
        if one.detail
    ]
    for text in dict.fromkeys(lines):
        for line in paragraph(text, hanging="  "):
            echo(line)


def _run(items: Sequence[Item], log: BatchLog, plan: Planner, form: PlanForm, *, quiet: bool) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True, markup=False)
    outcomes = []
    # Without a terminal, a line for each plan serves better than a bar.
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("planning", total=len(items))
        for item in items:
            outcome, is_new = _one(item, log, plan, form)
            outcomes.append(outcome)
            progress.advance(task)
            if not quiet and not console.is_terminal:
                echo(f"{item.name}: {outcome.state}{'' if is_new else ', done before'}")
    return outcomes


def _one(item: Item, log: BatchLog, plan: Planner, form: PlanForm) -> tuple[Outcome, bool]:
    """Plan one item, unless it was done before; what is wrong with it stops no other."""
    document = None
    try:
        spec = item.spec()
        request_digest = digest({"spec": read_json(spec)})
        done = log.done(item.name, request_digest)
        if done is not None:
            if done.plan_digest is not None and not log.spec_path(item.name).exists():
                write_content(spec, str(log.spec_path(item.name)))
            return done, False
        outcome, document = plan(item, spec, request_digest)
    except (BadInput, InvalidProblem, UnsupportedRequest, ValueError) as error:
        outcome = _invalid(item, error)
    except (PlannerError, CostModelError) as error:
        outcome = replace(Outcome.of(item, ""), detail=str(error))
    if document is not None:
        write_content(spec, str(log.spec_path(item.name)))
        write_plan(document, str(log.plan_path(item.name)), form)
    log.add(outcome)
    return outcome, True


def _invalid(item: Item, error: Exception) -> Outcome:
    issues = issues_of(error) if isinstance(error, InvalidProblem | UnsupportedRequest) else []
    detail = str(error)
    if issues:
        detail = _in_words(issues[0].pointer, issues[0].message, issues[0].hint, len(issues))
    return replace(Outcome.of(item, ""), state="invalid", detail=detail)


def _in_words(pointer: str, message: str, hint: str, num_issues: int) -> str:
    """Return the first of some issues: where, what, the way out, and the number of the others."""
    where, way_out = f"{pointer}: " if pointer else "", f"; {hint}" if hint else ""
    return f"{where}{message}{way_out}" + (f" (and {num_issues - 1} more)" if num_issues > 1 else "")


def _invalid_on_server(error: ProblemError) -> str:
    """Return what a service finds wrong with a spec, in the words of a spec that is planned here."""
    if not error.errors:
        return str(error)
    pointer, message, hint = (str(error.errors[0].get(key) or "") for key in ("pointer", "message", "hint"))
    return _in_words(pointer, message, hint, len(error.errors))


def _local_planner(find_statistics: FindStatistics) -> Planner:
    compile_search()
    library = Library(find_statistics=find_statistics)

    def run(item: Item, spec: bytes, request_digest: str) -> tuple[Outcome, CompactPlanDocument | None]:
        request = parse_spec(spec, library)
        result = planned(request, request.assumptions)
        blank = Outcome.of(item, request_digest)
        if result.plan is None:
            state = "infeasible" if result.reason == Reason.INFEASIBLE else "no-plan"
            return replace(blank, state=state, detail=result.detail), None
        document = document_of(request, result.plan)
        return _outcome_of(blank, document, spec), document

    return run


def _remote_planner(url: str, tag: str, token: str | None) -> Planner:
    """Let a service plan; solves carry the tag of the batch."""
    try:
        client = PlannerClient(url, token=token)
    except ValueError as error:
        raise BadInput(str(error)) from error
    num_unreached = 0  # in a row

    def run(item: Item, spec: bytes, request_digest: str) -> tuple[Outcome, CompactPlanDocument | None]:
        nonlocal num_unreached
        blank = Outcome.of(item, request_digest)
        if num_unreached >= _MOST_UNREACHED:
            return replace(blank, detail=f"not asked for: {url} could not be reached for those before"), None
        try:
            answer = ask(blank, spec)
        except Unreachable as error:
            num_unreached += 1
            return replace(blank, detail=str(error)), None
        except SolveTimeout as error:
            answer = replace(blank, state="no-plan", detail=str(error)), None
        except ProblemError as error:
            if error.status == UNAUTHORIZED:
                raise  # of all specs alike: the batch goes on where it was with a key
            state = "invalid" if error.status in (400, 422) else "failed"
            answer = replace(blank, state=state, detail=_invalid_on_server(error)), None
        except ClientError as error:
            answer = replace(blank, detail=str(error)), None
        num_unreached = 0
        return answer

    def ask(blank: Outcome, spec: bytes) -> tuple[Outcome, CompactPlanDocument | None]:
        document = json.loads(spec)
        solver = document.get("solver") if isinstance(document, dict) else None
        limit = solver.get("time_limit_seconds", 10) if isinstance(solver, dict) else 10
        solve = client.solve(document, wait_seconds=60 + 5 * float(limit), tags=[f"batch={tag}"])
        result = solve.get("result")
        if not isinstance(result, dict) or result.get("plan_digest") is None:
            reason = result["termination"]["reason"] if isinstance(result, dict) else "failed"
            state = "infeasible" if reason == "INFEASIBLE" else "no-plan"
            detail = result["termination"]["detail"] if isinstance(result, dict) else str(solve.get("error"))
            return replace(blank, state=state, detail=detail), None
        plan = client.plan_of(solve)
        found = cast("CompactPlanDocument", compact_document(json.loads(plan.received)))
        return _outcome_of(blank, found, spec), found

    return run


def _outcome_of(blank: Outcome, document: CompactPlanDocument, spec: bytes) -> Outcome:
    """Return the outcome of a solve that found a plan of a spec."""
    objective, provenance = document["objective"], document["provenance"]
    figures, _ = figures_of(document, machines_of(json.loads(spec), {}))
    verdict = verdict_of(document)
    legal = {one.name: one.ratio for one in verdict.comparisons if one.state == LEGAL}
    return replace(
        blank,
        state="planned",
        plan_digest=document["plan_digest"],
        objective=objective["name"],
        seconds=objective["seconds"],
        relative_gap=objective["relative_gap"],
        world_size=document.get("replica_groups", document)["world_size"],
        solver_seconds=provenance["solver_seconds"],
        samples_per_second=figures.samples_per_second,
        torchrec_ratio=legal.get(TORCHREC_GREEDY),
        verdict=verdict_text(verdict),
        is_whole_step=None if figures.samples_per_second is None else figures.is_whole_step,
    )


def _tag(tag: str | None, folder: Path) -> str:
    """Return the name of a batch as tags are spelled."""
    chosen = tag if tag is not None else folder.resolve().name.lower()
    return re.sub(r"[^a-z0-9._-]", "-", chosen)[:50] or "batch"


def _exit_code(outcomes: Sequence[Outcome]) -> ExitCode:
    """Return the gravest code that any item would have had alone."""
    states = {outcome.state for outcome in outcomes}
    if "failed" in states or "no-plan" in states:
        return ExitCode.TROUBLE
    if "invalid" in states:
        return ExitCode.BAD_INPUT
    return ExitCode.INFEASIBLE if "infeasible" in states else ExitCode.OK
